import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { showSourcePlaces } from '#src/base/install/source-places.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

/** Maps the whole first line to line 3 of `thing.ts`. */
const MAP = { version: 3, sources: ['thing.ts'], names: [], mappings: 'AAEA' };

test('a stack trace names the place in the source if there is a source map, and otherwise the compiled file', async (t) => {
  const { prepareStackTrace } = Error;
  t.after(() => {
    Error.prepareStackTrace = prepareStackTrace;
  });
  const folder = temporaryDirectory(t);
  const stackOf = async (name: string, map?: string) => {
    const path = join(folder, name);
    writeFileSync(path, 'export const fail = () => new TypeError("no");');
    if (map !== undefined) writeFileSync(`${path}.map`, map);
    const { fail }: { fail: () => Error } = await import(pathToFileURL(path).href);
    return fail().stack?.split('\n').slice(0, 2).join(' ');
  };
  showSourcePlaces();
  assert.equal(
    await stackOf('mapped.mjs', JSON.stringify(MAP)),
    `TypeError: no     at fail (${join(folder, 'thing.ts')}:3:1)`,
  );
  const url = pathToFileURL(folder).href;
  assert.equal(await stackOf('plain.mjs'), `TypeError: no     at fail (${url}/plain.mjs:1:27)`);
  assert.equal(await stackOf('broken.mjs', '{'), `TypeError: no     at fail (${url}/broken.mjs:1:27)`);
});
