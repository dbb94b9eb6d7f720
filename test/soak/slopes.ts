/** The growth of a resource, and whether it is too fast for a server that runs for years. */

/** The figures of a server at rest, by name. */
export type Sample = Readonly<Record<string, number>>;

export interface TimedSample {
  readonly atMs: number;
  readonly values: Sample;
}

/** The allowed growth of a figure. */
export interface GrowthLimit {
  /** The limit of growth for each day. */
  readonly perDay: number;
  /**
   * A growth from the first half of the samples to the second half that is below this is noise,
   * however steep it would be for a day.
   */
  readonly noise: number;
}

export interface Slope {
  readonly name: string;
  readonly first: number;
  readonly last: number;
  readonly perDay: number;
  readonly isTooSteep: boolean;
}

const DAY_MS = 86_400_000;

/**
 * Returns the slope of each limited name: the median of the slopes of all pairs of samples
 * (Theil–Sen), so that occasional garbage collections do not count. The first third of the samples
 * is left out, because caches fill in it.
 */
export function slopesOf(
  samples: readonly TimedSample[],
  limits: Readonly<Record<string, GrowthLimit>>,
): Slope[] {
  const warm = samples.slice(Math.floor(samples.length / 3));
  return Object.entries(limits).map(([name, limit]) => {
    const points = warm.map(({ atMs, values }) => ({ atMs, value: values[name] ?? 0 }));
    const half = Math.floor(points.length / 2);
    const [first, last] = [points.slice(0, half), points.slice(-half)].map((part) =>
      median(part.map(({ value }) => value)),
    );
    const slopes = points.flatMap((a, i) =>
      points.slice(i + 1).map((b) => ((b.value - a.value) / Math.max(b.atMs - a.atMs, 1)) * DAY_MS),
    );
    const perDay = median(slopes);
    const grown = (last ?? 0) - (first ?? 0);
    return {
      name,
      first: first ?? 0,
      last: last ?? 0,
      perDay,
      isTooSteep: perDay > limit.perDay && grown > limit.noise,
    };
  });
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
