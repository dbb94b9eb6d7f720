import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';

/** Flips a bit of the last letter of every copy of `text` in the file, as a failing disk does. */
export function damage(file: string, text: string): void {
  const bytes = readFileSync(file);
  let at = bytes.indexOf(text);
  assert.notEqual(at, -1);
  for (; at !== -1; at = bytes.indexOf(text, at + 1)) bytes[at + text.length - 1]! ^= 1;
  writeFileSync(file, bytes);
}
