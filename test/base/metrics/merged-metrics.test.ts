import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeMetrics } from '#src/base/metrics/merged-metrics.ts';
import { Registry } from '#src/base/metrics/registry.ts';

/** Returns the metrics of a worker that has sold this many apples. */
function registryOf(apples: number): Registry {
  const registry = new Registry();
  registry.counters({ name: 'sold', help: 'What was sold.' }, 'what').of('{a} "b" c').add(apples);
  registry.observedGauge({ name: 'stock_bytes', help: 'Stock.' }, [], () => [[[], apples]]);
  registry.histograms({ name: 'wait_seconds', help: 'Waits.' }, [1]).of().observe(0.5);
  return registry;
}

test('the metrics of several workers have each family once, and each series with the number of its worker', () => {
  const parts = [1, 2].map((worker) => ({ worker, text: registryOf(worker * 3).text() }));
  assert.equal(
    mergeMetrics(parts, 1),
    `# TYPE troupe_workers gauge
# HELP troupe_workers Workers of the server, by whether their metrics are here.
troupe_workers{state="answered"} 2
troupe_workers{state="silent"} 1
# TYPE sold counter
# HELP sold What was sold.
sold_total{worker="1",what="{a} \\"b\\" c"} 3
sold_total{worker="2",what="{a} \\"b\\" c"} 6
# TYPE stock_bytes gauge
# UNIT stock_bytes bytes
# HELP stock_bytes Stock.
stock_bytes{worker="1"} 3
stock_bytes{worker="2"} 6
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
# HELP wait_seconds Waits.
wait_seconds_bucket{worker="1",le="1.0"} 1
wait_seconds_bucket{worker="1",le="+Inf"} 1
wait_seconds_count{worker="1"} 1
wait_seconds_sum{worker="1"} 0.5
wait_seconds_bucket{worker="2",le="1.0"} 1
wait_seconds_bucket{worker="2",le="+Inf"} 1
wait_seconds_count{worker="2"} 1
wait_seconds_sum{worker="2"} 0.5
# EOF
`,
  );
});

test('a metric family that only one worker reports keeps its description', () => {
  const own = new Registry();
  own.observedGauge({ name: 'rare', help: 'Rare.' }, [], () => [[[], 1]]);
  const text = mergeMetrics(
    [
      { worker: 0, text: registryOf(1).text() },
      { worker: 1, text: own.text() },
    ],
    0,
  );
  assert.match(text, /# TYPE rare gauge\n# HELP rare Rare\.\nrare\{worker="1"\} 1\n# EOF\n$/);
});
