import assert from 'node:assert/strict';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/**
 * Flips a bit of the last byte of every copy of `part` in the file, as a failing disk does. The bytes are written in place, so
 * that a process which has mapped the file reads them, too.
 */
export function damage(file: string, part: string | Uint8Array): void {
  const bytes = readFileSync(file);
  const wanted = Buffer.from(part);
  let at = bytes.indexOf(wanted);
  assert.notEqual(at, -1);
  const descriptor = openSync(file, 'r+');
  for (; at !== -1; at = bytes.indexOf(wanted, at + 1)) {
    const last = at + wanted.length - 1;
    writeSync(descriptor, Buffer.from([bytes[last]! ^ 1]), 0, 1, last);
  }
  closeSync(descriptor);
}
