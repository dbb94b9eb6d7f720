/** Enrolment at the port for kernel nodes, without the program of a node. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { EnrolledNodes } from '#src/confined/nodes/enrolled-nodes.ts';
import { enrol } from '#src/confined/nodes/host/enrol.ts';
import { parseInvitation } from '#src/confined/nodes/invitation.ts';
import { KernelNodes } from '#src/confined/nodes/kernel-nodes.ts';
import { openNodeSecret, readNodeSecret } from '#src/confined/nodes/node-secret.ts';
import { writePrivateFile } from '#storage/disk/private-file.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };

async function listening(t: TestContext) {
  const folder = temporaryDirectory(t);
  const enrolled = await EnrolledNodes.open(folder, writePrivateFile);
  const file = join(folder, 'secret');
  const isSecret = openNodeSecret({ file, authority: enrolled.digest, write: writePrivateFile });
  const check = { path: '/nowhere', text: '' };
  const nodes = new KernelNodes({
    placement: 'spread',
    host: '127.0.0.1',
    port: 0,
    enrolled,
    isSecret,
    check,
    log,
  });
  await nodes.listen();
  t.after(() => nodes[Symbol.asyncDispose]());
  const address = { host: '127.0.0.1', port: nodes.port };
  const invited = (name?: string) => parseInvitation(`127.0.0.1:${nodes.port}#${nodes.invite(name).code}`)!;
  return { nodes, folder, invited, secret: { ...address, ...readNodeSecret(file) } };
}

test('fifty machines of one name enrol with the secret at once, and each gets its own name', async (t) => {
  const { nodes, secret } = await listening(t);
  const enrolments = await Promise.all(Array.from({ length: 50 }, () => enrol(secret, 'pod')));
  assert.equal(new Set(enrolments.map(({ membership }) => membership.name)).size, 50);
  assert(enrolments.every(({ isTemporary }) => isTemporary));
  assert.equal(nodes.list().length, 50);
});

test('a machine with the secret never gets the name of a machine that was invited', async (t) => {
  const { invited, secret } = await listening(t);
  const { membership, isTemporary } = await enrol(invited(), 'one');
  assert.deepEqual([membership.name, isTemporary], ['one', false]);
  assert.match((await enrol(secret, 'one')).membership.name, /^one-[0-9a-f]{8}$/);
});

test('an invitation with a name gives the node that name, and the file of enrolled nodes has no temporary node', async (t) => {
  const { invited, secret, folder } = await listening(t);
  const { membership, isTemporary } = await enrol(invited('ray-1'), 'one');
  assert.deepEqual([membership.name, isTemporary], ['ray-1', true]);
  await enrol(secret, 'two');
  await enrol(invited(), 'three');
  const { nodes } = JSON.parse(readFileSync(join(folder, 'enrolled.json'), 'utf8')) as {
    readonly nodes: readonly { readonly name: string }[];
  };
  assert.deepEqual(
    nodes.map(({ name }) => name),
    ['three'],
  );
});
