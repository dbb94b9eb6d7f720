import assert from 'node:assert/strict';
import { lstatSync, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startAttacked } from './attacked-server.ts';

/** Everything below that others than its owner may do anything with. */
function openToOthers(root: string): string[] {
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !lstatSync(path).isSymbolicLink() && (lstatSync(path).mode & 0o077) !== 0)
    .map((path) => `${relative(root, path)} ${(lstatSync(path).mode & 0o777).toString(8)}`);
}

test('nothing that the server or a kernel makes is open to other users', async (t) => {
  const umask = process.umask(0o000); // the server's own is what counts
  t.after(() => process.umask(umask));
  const server = await startAttacked(t, { user: 'this user' });
  const notebook = await openNotebook(server, {
    a: 'import os\nos.makedirs("made/by")\nopen("made/by/a-cell", "w").write("x")',
  });
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await server.client.datasources.create({
    slug: 'kept',
    connection: { kind: 'sqlite', path: 'kept.sqlite' },
  });
  assert.deepEqual(openToOthers(server.dataDir), []);
  assert.equal(lstatSync(server.dataDir).mode & 0o777, 0o700);
  assert.equal(lstatSync(server.keyringFile).mode & 0o777, 0o600);
  assert.equal(lstatSync(join(server.dataDir, 'bootstrap.json')).mode & 0o777, 0o600);
});
