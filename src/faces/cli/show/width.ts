// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape sequences of terminals begin with one
const ESCAPES = /\u001b\[[\d;]*m/g;
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/gu;
const NO_WIDTH = /\p{Mark}|\u200b|\u200d/gu;

/** Returns how many columns one line takes on a terminal. */
export function widthOf(line: string): number {
  const plain = line.replace(ESCAPES, '');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: plain ASCII is what nearly every line is
  if (/^[\u0000-\u007f]*$/.test(plain)) return plain.length;
  const wide = plain.match(WIDE)?.length ?? 0;
  return [...plain.replace(NO_WIDTH, '')].length + wide;
}

/**
 * Returns the line, cut to at most `columns`, with an ellipsis in place of the rest. The text must have no escape sequences.
 */
export function cutTo(line: string, columns: number): string {
  if (widthOf(line) <= columns) return line;
  if (columns < 1) return '';
  const characters = [...line].slice(0, columns);
  while (widthOf(characters.join('')) > columns - 1) characters.pop();
  return `${characters.join('').trimEnd()}…`;
}
