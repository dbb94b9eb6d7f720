import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { EnrolledNodes } from '#src/confined/nodes/enrolled-nodes.ts';
import { withNewKey, writeKeyring } from '#src/datasource/keys/keyring.ts';
import { backUp } from '#src/operate/maintenance/backup.ts';
import { ChainWriter } from '#src/operate/maintenance/increment.ts';
import { markStore } from '#src/operate/maintenance/lineage.ts';
import { openSealedAuthority, sealingOf } from '#src/operate/maintenance/nodes-sealing.ts';
import { restore } from '#src/operate/maintenance/restore.ts';
import { verify } from '#src/operate/maintenance/verify.ts';
import { writePrivateFile } from '#storage/disk/private-file.ts';
import { openStore } from '#storage/open-store.ts';
import { Shell } from '#test/faces/cli/troupe-process.ts';
import { startServerProcess } from '#test/support/child-server.ts';
import { joinNode, startServerOfNodes } from '#test/support/kernel-node.ts';
import { eventually } from '#test/support/processes.ts';
import { NODES, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { filledDirectory } from '#test/support/store/filled-directory.ts';

const listOf = (...names: string[]) => {
  const nodes = names.map((name) => ({ name, key: 'ab', enrolledAt: '2026-11-28', isDraining: false }));
  return JSON.stringify({ version: 1, nodes });
};

function openNodes(dataDir: string, keyring: string): Promise<EnrolledNodes> {
  const unseal = (sealed: string, file: string) => openSealedAuthority(keyring, sealed, file);
  return EnrolledNodes.open(join(dataDir, 'nodes'), writePrivateFile, unseal);
}

test('a backup and its increments contain the enrolled nodes and the sealed authority of nodes, which only the keyring opens', async (t) => {
  const dataDir = await filledDirectory(t);
  const place = join(dataDir, '..');
  const keyring = join(place, 'keyring.json');
  writeKeyring(keyring, withNewKey(undefined));
  const { digest } = await openNodes(dataDir, keyring);
  writeFileSync(join(dataDir, 'nodes/enrolled.json'), listOf('one'));
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  const to = join(place, 'backup');
  const copyStore = (folder: string, isCompact: boolean) => store.copyTo(folder, isCompact);
  const sealing = sealingOf(keyring);
  // A file's time counts as settled two seconds after its change; until then each increment copies the file again.
  await new Promise((resolve) => setTimeout(resolve, 2_100));
  await backUp({ dataDir, to, copyStore, sealing, mark: await markStore(store) });
  assert.doesNotMatch(readFileSync(join(to, 'nodes/authority.sealed'), 'latin1'), /PRIVATE KEY|CERTIFICATE/);

  const writer = ChainWriter.open({ directory: to, dataDir, store, sealing })!;
  assert.equal(await writer.add(), undefined, 'nothing has changed');
  writeFileSync(join(dataDir, 'nodes/enrolled.json'), listOf('one', 'two'));
  await writer.add();
  assert.deepEqual(readdirSync(join(to, 'increments/000001/nodes')), ['enrolled.json']);
  writeKeyring(keyring, withNewKey(undefined));
  await writer.add();
  assert.deepEqual(
    readdirSync(join(to, 'increments/000002/nodes')),
    ['authority.sealed'],
    'another key seals it',
  );
  assert.deepEqual((await verify(to)).damage, []);

  const elsewhere = join(place, 'restored');
  await restore({ from: to, dataDir: elsewhere });
  const other = join(place, 'other.json');
  writeKeyring(other, withNewKey(undefined));
  await assert.rejects(
    openNodes(elsewhere, other),
    /authority\.sealed cannot be opened with this keyring, which lacks the key/,
  );
  const restored = await openNodes(elsewhere, keyring);
  assert.deepEqual(restored.digest, digest);
  assert.deepEqual(
    restored.list().map(({ name }) => name),
    ['one', 'two'],
  );
  assert.deepEqual(readdirSync(join(elsewhere, 'nodes')).sort(), ['authority.pem', 'enrolled.json']);
});

test('a node can join a restored server again, without another invitation', async (t) => {
  const server = await startServerOfNodes(t);
  const node = await joinNode(t, server, 'one');
  const { port } = await server.client.nodes.invite();
  const shell = new Shell(t);
  const backup = join(shell.cwd, 'backup');
  await shell.text(['backup', backup], { env: { TROUPE_DATA_DIR: server.dataDir } });
  await server.end('SIGKILL');
  const elsewhere = join(shell.cwd, 'data');
  await shell.text(['restore', backup], { env: { TROUPE_DATA_DIR: elsewhere } });
  cpSync(join(server.dataDir, 'keyring.json'), join(elsewhere, 'keyring.json'));
  rmSync(server.dataDir, { recursive: true });
  const restored = await startServerProcess(elsewhere, {
    ...SETTINGS,
    ...pythonOfTests(),
    ...NODES,
    TROUPE_NODES_PORT: String(port),
  });
  t.after(() => restored.end('SIGKILL'));
  await node.joined(2);
});

/** The entries of a data directory that no backup has, each with the reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  'keyring.json': 'opens the credentials in the backup, so it is kept apart',
  'bootstrap.json': 'is the first token in plain text; the store has its hash',
  claim: 'is of the process that uses the directory',
  run: 'has the sockets of the running server',
  'confinement.json': 'is what the server found on this machine',
  packages: 'is installed again when it is needed',
};

test('everything in the data directory is in a backup, or is left out for a reason that is listed', async (t) => {
  const server = await startServerOfNodes(t, { TROUPE_BOOTSTRAP_TOKEN: '' });
  await eventually('all checks are kept', () => existsSync(join(server.dataDir, 'nodes/authority.pem')));
  const backup = join(server.dataDir, '..', `backup-${server.pid}`);
  t.after(() => rmSync(backup, { recursive: true, force: true }));
  await backUp({
    dataDir: server.dataDir,
    to: backup,
    sealing: sealingOf(join(server.dataDir, 'keyring.json')),
  });
  const entries = readdirSync(server.dataDir).filter((name) => !existsSync(join(backup, name)));
  assert.deepEqual(
    entries.filter((name) => LEFT_OUT[name] === undefined),
    [],
    'these entries are neither in the backup nor in the list',
  );
  const nodes = readdirSync(join(server.dataDir, 'nodes')).filter(
    (name) => !existsSync(join(backup, 'nodes', name)),
  );
  assert.deepEqual(nodes, ['authority.pem'], 'the backup has it sealed, as authority.sealed');
});
