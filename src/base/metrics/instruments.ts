/**
 * The instruments of the server's metrics. An instrument is resolved once, where it is used; using it costs
 * nanoseconds.
 */

/** A number that only grows. */
export class Counter {
  value = 0;

  add(count = 1): void {
    this.value += count;
  }
}

/** How many values were at most each of some bounds, and the sum of all values. */
export class Histogram {
  readonly bounds: readonly number[];
  /**
   * There is one count more than there are bounds: the last one counts the values above all bounds.
   */
  readonly counts: Float64Array;
  sum = 0;

  /** `bounds` are in ascending order. */
  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds } = this;
    let place = 0;
    while (place < bounds.length && value > bounds[place]!) place++;
    this.counts[place]!++;
    this.sum += value;
  }
}

/** The values of the labels of one series, in the order of the names. */
export type LabelValues<Names extends readonly string[]> = { readonly [Index in keyof Names]: string };

/**
 * The instruments of one metric, by the values of their labels. Labels never hold ids, users, workspaces, slugs or paths.
 * Beyond `MAX_SERIES` all further values share one series whose labels say `other`, so that no mistake and no client can
 * make a family grow without bound.
 */
export class Family<Instrument, const Names extends readonly string[]> {
  readonly labelNames: Names;
  readonly #make: () => Instrument;
  readonly #series = new Map<
    string,
    { readonly labels: readonly string[]; readonly instrument: Instrument }
  >();

  constructor(labelNames: Names, make: () => Instrument) {
    this.labelNames = labelNames;
    this.#make = make;
  }

  /** Returns the instrument for these label values; for equal values always the same one. */
  of(...labels: LabelValues<Names>): Instrument {
    const key = labels.join('\0');
    const known = this.#series.get(key);
    if (known !== undefined) return known.instrument;
    if (this.#series.size >= MAX_SERIES) return this.#overflow();
    const instrument = this.#make();
    this.#series.set(key, { labels: [...labels], instrument });
    return instrument;
  }

  series(): Iterable<{ readonly labels: readonly string[]; readonly instrument: Instrument }> {
    return this.#series.values();
  }

  #overflow(): Instrument {
    const labels = this.labelNames.map(() => 'other');
    const key = labels.join('\0');
    const known = this.#series.get(key);
    if (known !== undefined) return known.instrument;
    const instrument = this.#make();
    this.#series.set(key, { labels, instrument });
    return instrument;
  }
}

/** The most series of one metric, in addition to the series for all others. */
export const MAX_SERIES = 2_000;
