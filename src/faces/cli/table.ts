import { safeLine } from './safe-text.ts';
import { widthOf } from './show/width.ts';

/** Returns rows under a heading, in columns as wide as their widest cell. Without rows, only the heading. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  color: boolean,
): string {
  const plain = rows.map((row) => row.map(safeLine));
  const widths = heading.map((title, column) =>
    Math.max(title.length, ...plain.map((row) => widthOf(row[column] ?? ''))),
  );
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))))
      .join('  ')
      .trimEnd();
  const title = line(heading.map((text) => text.toUpperCase()));
  return [color ? `\u001b[1m${title}\u001b[22m` : title, ...plain.map(line)]
    .map((text) => `${text}\n`)
    .join('');
}
