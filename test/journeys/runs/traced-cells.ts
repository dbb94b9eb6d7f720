/** Cells that append a letter to a file each time they run, so that a test can read which ran, and in which order. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestServer } from '#test/support/server-fixture.ts';

export function traced(file: string, cellId: string, code = ''): string {
  return `open('${file}', 'a').write('${cellId}')\n${code}`;
}

/** Returns a function that returns the letters in a file. */
export function traceOf(server: Pick<TestServer, 'filesDir'>) {
  return (file: string): string => readFileSync(join(server.filesDir, file), 'utf8');
}
