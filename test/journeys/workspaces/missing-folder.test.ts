/** A workspace whose folder is missing, or cannot be made: operations without files work nevertheless. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { DATASOURCE_FAILURES } from '#src/datasource/failure.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { nowhere } from '../datasources/datasource-requests.ts';

const server = await startServer(test);
const folders = join(server.dataDir, 'workspaces');
const TEST = '/api/v3/datasource-connections/test';

/** Returns a function that sends requests in a new workspace, and the workspace's id. */
async function newWorkspace(name: string) {
  const { id } = await server.client.workspaces.create({ name });
  const headers = { 'service-workspace-id': id };
  const request = (method: string, path: string, body?: object) =>
    server.request(method, path, { headers, ...(body && { body }) });
  return { id, request };
}

test('a test of a remote database and its use need no folder of the workspace', async () => {
  const { id, request } = await newWorkspace('Blocked');
  mkdirSync(folders, { recursive: true });
  writeFileSync(join(folders, id), 'no folder');
  const failed = ({ status, body }: { status: number; body: unknown }) => [status, Object(body).message];
  const connection = nowhere();
  assert.deepEqual(failed(await request('POST', TEST, { connection })), [400, DATASOURCE_FAILURES.refused]);
  assert.equal((await request('POST', '/api/v3/datasources', { slug: 'remote', connection })).status, 201);
  assert.deepEqual(failed(await request('POST', '/api/v3/datasources/remote/test')), [
    400,
    DATASOURCE_FAILURES.refused,
  ]);
  const embedded = { kind: 'sqlite', path: 'a.sqlite' };
  assert.deepEqual(failed(await request('POST', TEST, { connection: embedded })), [
    400,
    DATASOURCE_FAILURES.failed,
  ]);
});

test('requests that read files, even missing files, create no folder', async () => {
  const { id, request } = await newWorkspace('Empty');
  const listed = await request('GET', '/api/v3/files');
  assert.deepEqual([listed.status, Object(listed.body).items], [200, []]);
  assert.equal((await request('GET', '/api/v3/files/a/b.csv')).status, 404);
  assert.equal((await request('DELETE', '/api/v3/files/a.csv')).status, 404);
  const usage = await request('GET', '/api/v3/usage');
  assert.equal(usage.status, 200);
  assert.equal(existsSync(join(folders, id)), false);
});
