/**
 * The cost of an increment and of an observation, with the server's own metrics and with `prom-client`. `prom-client`
 * is not a dependency of the project: install it anywhere and pass the path of its folder.
 *
 * node dist/bench/metrics-cost.js /tmp/prom/node_modules/prom-client
 */
import { createRequire } from 'node:module';
import { Counter, Family, Histogram } from '#src/base/metrics/instruments.ts';

interface PromClient {
  readonly Counter: new (
    options: object,
  ) => { inc(labels: object): void; labels(...values: string[]): { inc(): void } };
  readonly Histogram: new (options: object) => { observe(labels: object, value: number): void };
}

const TIMES = 3_000_000;
const BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];
const [path] = process.argv.slice(2);
if (path === undefined) throw new Error('Pass the folder of prom-client.');
const prom: PromClient = createRequire(import.meta.url)(path);

const counters = new Family(['method', 'status'], () => new Counter());
const ours = counters.of('GET', '200');
const histogram = new Histogram(BOUNDS);
const labelNames = ['method', 'status'];
const labels = { method: 'GET', status: '200' };
const theirs = new prom.Counter({ name: 'requests', help: 'requests', labelNames });
const resolved = theirs.labels('GET', '200');
const theirHistogram = new prom.Histogram({ name: 'seconds', help: 'seconds', labelNames, buckets: BOUNDS });

report('ours: add to a resolved counter', () => ours.add());
report('ours: look a counter up and add', () => counters.of('GET', '200').add());
report('ours: observe', () => histogram.observe(0.02));
report('prom-client: increment a resolved counter', () => resolved.inc());
report('prom-client: increment with labels', () => theirs.inc(labels));
report('prom-client: observe with labels', () => theirHistogram.observe(labels, 0.02));

/** Prints the median time of a call over five rounds, in microseconds. */
function report(name: string, act: () => void): void {
  const rounds = Array.from({ length: 5 }, () => {
    const startedAt = performance.now();
    for (let i = 0; i < TIMES; i++) act();
    return ((performance.now() - startedAt) * 1000) / TIMES;
  });
  const [, , median = 0] = rounds.sort((a, b) => a - b);
  process.stdout.write(`${name}: ${median.toFixed(3)} µs\n`);
}
