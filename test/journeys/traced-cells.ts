/** Cells that leave a letter in a file each time they run, so that what ran, and in which order, can be read. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestServer } from '#test/support/server-fixture.ts';

export function traced(file: string, cellId: string, code = ''): string {
  return `open('${file}', 'a').write('${cellId}')\n${code}`;
}

/** Returns a function that returns what cells have left in a file. */
export function traceOf(server: Pick<TestServer, 'filesDir'>) {
  return (file: string): string => readFileSync(join(server.filesDir, file), 'utf8');
}
