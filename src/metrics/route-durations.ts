import type { Histogram } from './instruments.ts';
import type { ServerMetrics } from './server-metrics.ts';

/** The durations of one operation's requests, by status. */
export class RouteDurations {
  readonly #metrics: ServerMetrics;
  readonly #method: string;
  readonly #route: string;
  readonly #byStatus = new Map<number, Histogram>();

  /** `path` has the names of its parameters, never their values. */
  constructor(metrics: ServerMetrics, method: string, path: string) {
    this.#metrics = metrics;
    this.#method = method;
    this.#route = path;
  }

  observe(status: number, seconds: number): void {
    let histogram = this.#byStatus.get(status);
    if (histogram === undefined) {
      histogram = this.#metrics.requests.of(this.#method, this.#route, String(status));
      this.#byStatus.set(status, histogram);
    }
    histogram.observe(seconds);
  }
}
