const UNITS: readonly (readonly [unit: string, seconds: number])[] = [
  ['hour', 3600],
  ['minute', 60],
];

/** Returns a duration in the largest unit in which it is a whole number, such as `90 minutes`. */
export function durationText(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds % each === 0) ?? ['second', 1];
  const count = seconds / size;
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
