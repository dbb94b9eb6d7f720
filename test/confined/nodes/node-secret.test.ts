// tier: whole, because it starts servers with nodes; invitation-again.test.ts stays in the gate
/** The secret that admits machines without an invitation. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { openNodeSecret, readNodeSecret } from '#src/confined/nodes/node-secret.ts';
import { writePrivateFile } from '#storage/disk/private-file.ts';
import { invite, startNode, startServerOfNodes } from '#test/support/kernel-node.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const authority = randomBytes(32);
const open = (file: string) => openNodeSecret({ file, authority, write: writePrivateFile });

function secretFile(t: TestContext): string {
  return join(temporaryDirectory(t), 'secret');
}

test('the server makes the file of the secret, and admits the secret in this file and no other secret', (t) => {
  const file = secretFile(t);
  const isSecret = open(file);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const found = readNodeSecret(file);
  assert(found.authority.equals(authority));
  assert.equal(found.secret.length, 32);
  assert.equal(isSecret(found.secret.toString('base64url')), true);
  for (const wrong of [randomBytes(32), found.secret.subarray(0, 31), Buffer.alloc(0)])
    assert.equal(isSecret(wrong.toString('base64url')), false);
  assert.equal(open(file)(found.secret.toString('base64url')), true, 'a restart keeps the secret');
});

test('a secret that other users can read, that is damaged, or that is of another server is not used', (t) => {
  const file = secretFile(t);
  open(file);
  chmodSync(file, 0o640);
  assert.throws(() => open(file), /Other users can read/);
  assert.doesNotThrow(() => readNodeSecret(file), 'the group of a pod may read the file');
  chmodSync(file, 0o604);
  assert.throws(() => readNodeSecret(file), /Other users can read/);
  chmodSync(file, 0o600);
  assert.throws(
    () => openNodeSecret({ file, authority: randomBytes(32), write: writePrivateFile }),
    /the secret of another server/,
  );
  writeFileSync(file, 'short');
  assert.throws(() => open(file), /is no secret of kernel nodes/);
  rmSync(file);
  assert.throws(() => readNodeSecret(file), /cannot be read/);
});

test('a node joins with the secret, comes back after a restart of the server, and is listed only while it is connected', async (t) => {
  const file = secretFile(t);
  const server = await startServerOfNodes(t, {
    TROUPE_NODES_SECRET_FILE: file,
    TROUPE_NODES_PORT: '18791',
  });
  const node = startNode(t, { invitation: '127.0.0.1:18791', secretFile: file, name: 'pod' });
  await node.joined();
  await openNotebook(server, { a: '1' });
  assert.equal((await server.client.kernels()).items[0]?.node, 'pod');
  await server.end('SIGKILL');
  const again = await server.again();
  await node.joined(2);
  await node.end('SIGKILL');
  await eventually('the node is forgotten', async () => (await again.client.nodes.list()).items.length === 0);
});

test("a machine with a wrong secret is refused, and a machine without the server's authority does not send the secret", async (t) => {
  const file = secretFile(t);
  const server = await startServerOfNodes(t, { TROUPE_NODES_SECRET_FILE: file });
  const { port } = await server.client.nodes.invite();
  const bytes = Buffer.from(readFileSync(file, 'utf8'), 'base64url');
  const refused = async (changed: Buffer): Promise<string> => {
    const wrong = secretFile(t);
    writeFileSync(wrong, changed.toString('base64url'), { mode: 0o600 });
    const node = startNode(t, { invitation: `127.0.0.1:${port}`, secretFile: wrong, name: 'one' });
    assert.equal(await node.ended, 1);
    return node.said.join(' ');
  };
  const otherSecret = Buffer.concat([randomBytes(32), bytes.subarray(32)]);
  assert.match(await refused(otherSecret), /The secret is not that of this server/);
  const otherAuthority = Buffer.concat([bytes.subarray(0, 32), randomBytes(32)]);
  assert.match(await refused(otherAuthority), /is not the one that made the invitation or the secret/);
  assert.deepEqual((await server.client.nodes.list()).items, []);
  const secrets = bytes.subarray(0, 32).toString('base64url');
  assert(!JSON.stringify(server.log).includes(secrets), 'no secret is in the log');
});

test('an invitation can come from the environment, and not from a process list', async (t) => {
  const server = await startServerOfNodes(t);
  const settings = { TROUPE_NODE_INVITATION: await invite(server) };
  await startNode(t, { name: 'one', settings }).joined();
});
