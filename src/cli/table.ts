/** Rows under a heading, in columns that are as wide as they have to be; nothing but the heading when there are none. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  color: boolean,
): string {
  const widths = heading.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  const title = line(heading.map((text) => text.toUpperCase()));
  return [color ? `\u001b[1m${title}\u001b[22m` : title, ...rows.map(line)]
    .map((text) => `${text}\n`)
    .join('');
}
