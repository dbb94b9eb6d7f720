/** Printed text as a terminal shows it, for pages: they have neither a cursor nor colours of terminals. */

/** Escape sequences of terminals: colours, and movements of the cursor. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what they begin with
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
/** The sequences that remove the rest of a line, or the whole line. Progress bars use them after a carriage return. */
const ERASURES: readonly string[] = ['\u001b[K', '\u001b[0K', '\u001b[2K'];
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what the sequences begin with
const MOVES = /(\r|\u001b\[[02]?K)/;

/**
 * Returns the text without escape sequences, in which only overwritten text is missing: after a carriage return, a line continues at its
 * beginning. Takes linear time.
 */
export function printedLines(text: string): string {
  return text
    .replace(ESCAPES, (sequence) => (ERASURES.includes(sequence) ? sequence : ''))
    .split('\n')
    .map((line) => (MOVES.test(line) ? overwritten(line) : line))
    .join('\n');
}

function overwritten(line: string): string {
  const shown: string[] = [];
  let at = 0;
  for (const part of line.split(MOVES)) {
    if (part === '\r') at = 0;
    else if (ERASURES.includes(part)) shown.length = Math.min(shown.length, part.includes('2') ? 0 : at);
    else for (const character of part) shown[at++] = character;
  }
  return Array.from(shown, (character) => character ?? ' ').join('');
}
