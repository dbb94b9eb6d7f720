import assert from 'node:assert/strict';
import { readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Auth } from '#src/base/caller/principal.ts';
import { fileRoutes } from '#src/http/routes/files.ts';
import { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { auth, GOOD, send, serve } from '#test/http/test-server.ts';
import { makePipe } from '#test/support/pipe.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

/** Grants every right to every caller. */
const openToAll: Auth = { ...auth, requirements: () => ({ scopes: [], role: 'viewer' }) };

test('with If-None-Match: * a PUT replaces neither a file nor a link nor a pipe', async (t) => {
  const root = temporaryDirectory(t);
  const files = new WorkspaceFiles(() => root);
  const server = await serve(t, fileRoutes(files, 1024), { auth: openToAll });
  writeFileSync(join(root, 'file'), 'old');
  symlinkSync('nowhere', join(root, 'link'));
  makePipe(join(root, 'pipe'));
  const put = async (name: string, conditions: Record<string, string>) => {
    const headers = { ...GOOD, ...conditions };
    const { status } = await send(server, `/api/v3/files/${name}`, { method: 'PUT', headers, body: 'new' });
    return status;
  };
  for (const name of ['file', 'link', 'pipe'])
    assert.equal(await put(name, { 'if-none-match': '*' }), 412, name);
  assert.equal(readlinkSync(join(root, 'link')), 'nowhere');
  assert.equal(await put('new', { 'if-none-match': '*' }), 201);
  assert.equal(await put('link', {}), 200);
  assert.equal(readFileSync(join(root, 'link'), 'utf8'), 'new');
});
