import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Secret } from '#src/base/caller/secret.ts';
import { Authenticator } from '#src/people/auth/authenticator.ts';
import { bootstrap, type ChosenAccess } from '#src/people/auth/bootstrap.ts';
import { Identity } from '#src/people/auth/identity.ts';
import { tokenHash } from '#src/people/auth/token-secret.ts';
import { SYSTEM } from '#storage/keys.ts';
import { bootstrapRecord, tokenHashes } from '#storage/records/identity.ts';
import { damage } from '#test/support/store/damage.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { openTestStore } from './identity-fixture.ts';

/** Starts on `dataDir` as a server does, and stops again. */
async function start(dataDir: string, chosen: ChosenAccess = {}) {
  await using store = await openTestStore(dataDir);
  const identity = new Identity(store);
  const result = await bootstrap(identity, dataDir, chosen);
  return result;
}

async function enter(dataDir: string, token: string, workspaceId: string) {
  await using store = await openTestStore(dataDir);
  return new Authenticator(new Identity(store)).authenticate(`Bearer ${token}`, workspaceId);
}

function readBootstrapFile(dataDir: string) {
  return JSON.parse(readFileSync(join(dataDir, 'bootstrap.json'), 'utf8'));
}

function startWithout(t: TestContext) {
  const dataDir = temporaryDirectory(t);
  return { dataDir, file: join(dataDir, 'bootstrap.json') };
}

test('an empty store gets a workspace, an owner and a token, in a file that only its owner can read', async (t) => {
  const { dataDir, file } = startWithout(t);
  const result = await start(dataDir);
  assert.ok(result.kind === 'generated');
  assert.deepEqual(readBootstrapFile(dataDir), {
    workspaceId: result.workspaceId,
    userId: 'owner',
    accessToken: result.token.reveal(),
  });
  assert.equal(result.file, file);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(dataDir).toSorted(), ['bootstrap.json', 'store']);
  const { role, scopes, userId } = await enter(dataDir, result.token.reveal(), result.workspaceId);
  assert.deepEqual(
    { role, scopes, userId },
    {
      role: 'owner',
      userId: 'owner',
      scopes: [
        'workspaceRuntime:connect',
        'datasource:read',
        'workspace:manage',
        'server:observe',
        'server:manage',
      ],
    },
  );
});

test('a second start changes nothing and has nothing to print', async (t) => {
  const { dataDir } = startWithout(t);
  await start(dataDir);
  const kept = readBootstrapFile(dataDir);
  assert.deepEqual(await start(dataDir), { kind: 'existing', ignored: false });
  assert.deepEqual(readBootstrapFile(dataDir), kept);
});

test('credentials that the operator chose are used, and neither printed nor written to a file', async (t) => {
  const { dataDir } = startWithout(t);
  const token = new Secret('chosen-by-the-operator');
  assert.deepEqual(await start(dataDir, { token, workspaceId: 'team' }), {
    kind: 'given',
    workspaceId: 'team',
  });
  assert.deepEqual(readdirSync(dataDir), ['store']);
  assert.equal((await enter(dataDir, token.reveal(), 'team')).role, 'owner');
  assert.deepEqual(await start(dataDir, { token, workspaceId: 'team' }), {
    kind: 'existing',
    ignored: false,
  });
});

test('only credentials that the operator did not choose are generated', async (t) => {
  const { dataDir } = startWithout(t);
  const result = await start(dataDir, { workspaceId: 'team' });
  assert.ok(result.kind === 'generated');
  assert.equal(result.workspaceId, 'team');
  assert.equal((await enter(dataDir, result.token.reveal(), 'team')).workspaceId, 'team');
});

test('a token that is set after the first start has no effect, and the start reports that', async (t) => {
  const { dataDir } = startWithout(t);
  await start(dataDir);
  const token = new Secret('set-after-the-first-start');
  assert.deepEqual(await start(dataDir, { token, workspaceId: 'team' }), { kind: 'existing', ignored: true });
  await assert.rejects(enter(dataDir, token.reveal(), 'team'), { code: 'unauthenticated' });
});

test('a start that was interrupted before its commit continues with the credentials in the file', async (t) => {
  const { dataDir, file } = startWithout(t);
  const cutOff = { workspaceId: 'ws_1', userId: 'owner', accessToken: 'trp_written-before-the-crash' };
  writeFileSync(file, JSON.stringify(cutOff), { mode: 0o600 });
  const result = await start(dataDir);
  assert.ok(result.kind === 'generated');
  assert.deepEqual([result.workspaceId, result.token.reveal()], [cutOff.workspaceId, cutOff.accessToken]);
  assert.equal((await enter(dataDir, cutOff.accessToken, 'ws_1')).role, 'owner');
});

test('an incomplete file is replaced', async (t) => {
  for (const damaged of ['', '{"workspaceId": "ws_1"', '{"workspaceId":"a b","accessToken":"x"}', '[]']) {
    const { dataDir, file } = startWithout(t);
    writeFileSync(file, damaged);
    const result = await start(dataDir);
    assert.ok(result.kind === 'generated');
    assert.equal(readBootstrapFile(dataDir).accessToken, result.token.reveal());
    assert.equal(statSync(file).mode & 0o777, 0o600);
  }
});

test('the file of credentials is on disk before the store counts as initialised', async (t) => {
  const { dataDir } = startWithout(t);
  await using store = await openTestStore(dataDir);
  const started = bootstrap(new Identity(store), dataDir, {});
  // Called synchronously: the record is written, but nothing is committed yet.
  const { accessToken } = readBootstrapFile(dataDir);
  const result = await started;
  assert.ok(result.kind === 'generated');
  assert.equal(result.token.reveal(), accessToken);
});

test('a server starts although the records of its first start and first token are damaged', async (t) => {
  const { dataDir } = startWithout(t);
  const token = new Secret('chosen-by-the-operator');
  await start(dataDir, { token, workspaceId: 'team' });
  {
    await using store = await openTestStore(dataDir);
    store.write((tx) => {
      tx.put(bootstrapRecord, { at: 'the time to damage', tokenId: '' }, SYSTEM);
      tx.put(tokenHashes, 'the id to damage', SYSTEM, tokenHash(token.reveal()));
    });
  }
  for (const text of ['the time to damage', 'the id to damage'])
    damage(join(dataDir, 'store', 'data.mdb'), text);
  assert.deepEqual(await start(dataDir, { token, workspaceId: 'team' }), {
    kind: 'existing',
    ignored: false,
  });
});
