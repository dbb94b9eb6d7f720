/** Printed text as a terminal shows it at the end: a progress bar that has rewritten its line many times is one line. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
const ESCAPES = /\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])/g;

/** Returns the text without escape sequences. Text after a carriage return overwrites its line. */
export function finalText(text: string): string {
  return text.replace(ESCAPES, '').replace(/\r\n/g, '\n').split('\n').map(finalLine).join('\n');
}

function finalLine(line: string): string {
  if (!line.includes('\r')) return line;
  let shown = '';
  for (const part of line.split('\r')) shown = part + shown.slice(part.length);
  return shown.trimEnd();
}
