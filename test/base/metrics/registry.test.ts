import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Family, Histogram, MAX_SERIES } from '#src/base/metrics/instruments.ts';
import { Registry } from '#src/base/metrics/registry.ts';

test('a counter, a gauge and a histogram are written in the OpenMetrics format', () => {
  const registry = new Registry();
  const sold = registry.counters({ name: 'sold', help: 'What was sold.' }, 'what');
  sold.of('apples').add(3);
  sold.of('pears').add();
  registry.observedGauge({ name: 'stock_bytes', help: 'Two\nlines.' }, [], () => [[[], 1.5]]);
  const waits = registry.histograms({ name: 'wait_seconds', help: 'Waits.' }, [0.5, 1], 'at');
  for (const seconds of [0.1, 0.5, 0.6, 7]) waits.of('the "till"').observe(seconds);
  assert.equal(
    registry.text(),
    `# TYPE sold counter
# HELP sold What was sold.
sold_total{what="apples"} 3
sold_total{what="pears"} 1
# TYPE stock_bytes gauge
# UNIT stock_bytes bytes
# HELP stock_bytes Two\\nlines.
stock_bytes 1.5
# TYPE wait_seconds histogram
# UNIT wait_seconds seconds
# HELP wait_seconds Waits.
wait_seconds_bucket{at="the \\"till\\"",le="0.5"} 2
wait_seconds_bucket{at="the \\"till\\"",le="1.0"} 3
wait_seconds_bucket{at="the \\"till\\"",le="+Inf"} 4
wait_seconds_count{at="the \\"till\\""} 4
wait_seconds_sum{at="the \\"till\\""} 8.2
# EOF
`,
  );
  assert.deepEqual(registry.names(), ['sold_total', 'stock_bytes', 'wait_seconds']);
});

test('a metric cannot be declared twice', () => {
  const registry = new Registry();
  registry.counters({ name: 'sold', help: '' });
  assert.throws(
    () => registry.counters({ name: 'sold', help: '' }),
    /A metric is declared once\. Broken by: sold/,
  );
});

test('a histogram counts a value that equals a bound among the values below the bound', () => {
  const histogram = new Histogram([1, 2]);
  for (const value of [1, 1.0001, 2, 3]) histogram.observe(value);
  assert.deepEqual([...histogram.counts], [1, 2, 1]);
});

test('a metric has a bounded number of series, and one series for all further labels', () => {
  const family = new Family(['name'], () => ({ count: 0 }));
  for (let n = 0; n < MAX_SERIES; n++) family.of(`name ${n}`).count++;
  assert.equal([...family.series()].length, MAX_SERIES);
  for (let n = 0; n < 10; n++) family.of(`another ${n}`).count++;
  const series = [...family.series()];
  assert.equal(series.length, MAX_SERIES + 1);
  assert.deepEqual(series.at(-1), { labels: ['other'], instrument: { count: 10 } });
});
