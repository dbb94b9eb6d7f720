import { widthOf } from './show/width.ts';

/** Rows under a heading, in columns that are as wide as they have to be; nothing but the heading when there are none. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  color: boolean,
): string {
  const plain = rows.map((row) => row.map(oneLine));
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

/** Names come from anybody: none may move the cursor of whoever lists them. */
function oneLine(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ');
}
