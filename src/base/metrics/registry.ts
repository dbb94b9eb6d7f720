/** All metrics of one server, and their text in the OpenMetrics format (https://prometheus.io/docs/specs/om/). */
import { invariant } from '../errors/invariant.ts';
import { Counter, Family, Histogram } from './instruments.ts';

export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** A value that is read when the metrics are read: its label values, and the number. */
export type Sample = readonly [labels: readonly string[], value: number];

interface Described {
  /**
   * The name ends with the unit, if there is one: `_seconds`, `_bytes`. The names of counters get their `_total` only in the text
   * of the metrics.
   */
  readonly name: string;
  readonly help: string;
}

interface Metric extends Described {
  readonly type: 'counter' | 'gauge' | 'histogram';
  lines(): Iterable<string>;
}

export class Registry {
  readonly #metrics = new Map<string, Metric>();

  counters<const Names extends readonly string[]>(
    metric: Described,
    ...labelNames: Names
  ): Family<Counter, Names> {
    const family = new Family(labelNames, () => new Counter());
    this.#add({ ...metric, type: 'counter', lines: () => counterLines(metric.name, family) });
    return family;
  }

  histograms<const Names extends readonly string[]>(
    metric: Described,
    bounds: readonly number[],
    ...labelNames: Names
  ): Family<Histogram, Names> {
    const family = new Family(labelNames, () => new Histogram(bounds));
    this.#add({ ...metric, type: 'histogram', lines: () => histogramLines(metric.name, family) });
    return family;
  }

  /** `collect` is called when the metrics are read, and at no other time. */
  observedGauge(metric: Described, labelNames: readonly string[], collect: () => Iterable<Sample>): void {
    this.#addObserved('gauge', '', metric, labelNames, collect);
  }

  /** Like `observedGauge`, for a number that only grows and is counted elsewhere. */
  observedCounter(metric: Described, labelNames: readonly string[], collect: () => Iterable<Sample>): void {
    this.#addObserved('counter', '_total', metric, labelNames, collect);
  }

  /** Returns the name of every metric, in the spelling of queries. */
  names(): string[] {
    return [...this.#metrics.values()].map(({ name, type }) => (type === 'counter' ? `${name}_total` : name));
  }

  /** Returns the text of all metrics. */
  text(): string {
    const lines: string[] = [];
    for (const { name, type, help, lines: samples } of this.#metrics.values()) {
      lines.push(`# TYPE ${name} ${type}`);
      const unit = /_(seconds|bytes)$/.exec(name)?.[1];
      if (unit !== undefined) lines.push(`# UNIT ${name} ${unit}`);
      lines.push(`# HELP ${name} ${escapeHelp(help)}`, ...samples());
    }
    lines.push('# EOF', '');
    return lines.join('\n');
  }

  #addObserved(
    type: 'counter' | 'gauge',
    suffix: string,
    metric: Described,
    labelNames: readonly string[],
    collect: () => Iterable<Sample>,
  ): void {
    const { name } = metric;
    this.#add({
      ...metric,
      type,
      *lines() {
        for (const [labels, value] of collect())
          yield `${name}${suffix}${braced(labelsText(labelNames, labels))} ${value}`;
      },
    });
  }

  #add(metric: Metric): void {
    invariant(!this.#metrics.has(metric.name), 'A metric is declared once.', metric.name);
    this.#metrics.set(metric.name, metric);
  }
}

function* counterLines(name: string, family: Family<Counter, readonly string[]>): Generator<string> {
  for (const { labels, instrument } of family.series())
    yield `${name}_total${braced(labelsText(family.labelNames, labels))} ${instrument.value}`;
}

function* histogramLines(name: string, family: Family<Histogram, readonly string[]>): Generator<string> {
  for (const { labels, instrument } of family.series()) {
    const text = labelsText(family.labelNames, labels);
    const separator = text === '' ? '' : ',';
    let count = 0;
    for (const [place, bound] of [...instrument.bounds, Number.POSITIVE_INFINITY].entries()) {
      count += instrument.counts[place]!;
      const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : Number.isInteger(bound) ? `${bound}.0` : bound;
      yield `${name}_bucket{${text}${separator}le="${le}"} ${count}`;
    }
    yield `${name}_count${braced(text)} ${count}`;
    yield `${name}_sum${braced(text)} ${instrument.sum}`;
  }
}

function labelsText(names: readonly string[], values: readonly string[]): string {
  return names.map((name, at) => `${name}="${escapeLabel(values[at] ?? '')}"`).join(',');
}

function braced(labels: string): string {
  return labels === '' ? '' : `{${labels}}`;
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}

function escapeHelp(text: string): string {
  return text.replace(/[\\\n]/g, (character) => (character === '\n' ? '\\n' : '\\\\'));
}
