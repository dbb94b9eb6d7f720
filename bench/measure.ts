/** The measurements of a scenario, and their targets. */

/** The unit of a measure; the unit of counts is empty. */
export type Unit = '' | 'ms' | '/s' | 'MiB' | 'KiB' | '%' | 'µs' | 'ms/s' | 'KiB/s' | '×';
/** A statistic of a distribution. */
export type Stat = 'p50' | 'p90' | 'p99' | 'max';

/** The distribution of many samples. `p10` shows the cost when nothing interferes. */
export type Spread = Readonly<Record<Stat | 'p10', number>> & { readonly samples: number };

/** A bound for one number: for a statistic of a spread, or for the value itself. */
export interface Target {
  readonly of: Stat | 'value';
  readonly limit: number;
  readonly bound: 'at most' | 'at least';
}

/** One figure of a scenario. */
export interface Measure {
  readonly label: string;
  readonly unit: Unit;
  readonly value: number | Spread;
  readonly targets: readonly Target[];
}

/** Returns a measure of the samples' distribution. Each statistic in `limits` must be at most its limit. */
export function spread(
  label: string,
  samples: Iterable<number>,
  limits: Partial<Record<Stat, number>> = {},
  unit: Unit = 'ms',
): Measure {
  const targets = (Object.keys(limits) as Stat[]).map(
    (of): Target => ({ of, limit: limits[of]!, bound: 'at most' }),
  );
  return { label, unit, value: spreadOf(samples), targets };
}

/** Returns a measure of one value that should be at most `limit`, if there is one. */
export function atMost(label: string, value: number, unit: Unit, limit?: number): Measure {
  return {
    label,
    unit,
    value,
    targets: limit === undefined ? [] : [{ of: 'value', limit, bound: 'at most' }],
  };
}

/** Returns a measure of one value that should be at least `limit`, if there is one. */
export function atLeast(label: string, value: number, unit: Unit, limit?: number): Measure {
  return {
    label,
    unit,
    value,
    targets: limit === undefined ? [] : [{ of: 'value', limit, bound: 'at least' }],
  };
}

/** Returns the distribution of the samples. */
export function spreadOf(samples: Iterable<number>): Spread {
  const sorted = Float64Array.from(samples).sort();
  if (sorted.length === 0) throw new Error('There are no samples.');
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]!;
  return {
    p10: at(0.1),
    p50: at(0.5),
    p90: at(0.9),
    p99: at(0.99),
    max: sorted[sorted.length - 1]!,
    samples: sorted.length,
  };
}

/** Returns the median. */
export function median(samples: readonly number[]): number {
  return spreadOf(samples).p50;
}

/** Returns the number that the target refers to. */
function reached({ value }: Measure, { of }: Target): number {
  if (typeof value === 'number') return value;
  return of === 'value' ? value.p50 : value[of];
}

/** Returns whether the measure meets the target. */
export function isMet(measure: Measure, target: Target): boolean {
  const value = reached(measure, target);
  return target.bound === 'at most' ? value <= target.limit : value >= target.limit;
}
