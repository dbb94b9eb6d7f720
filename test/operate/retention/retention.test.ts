import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { atOnce } from '#src/base/async/slices.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import {
  type AssetId,
  type DeliveryId,
  type HookId,
  newId,
  type RunId,
  type SessionId,
  type WorkspaceId,
} from '#src/base/ids.ts';
import { encodeVersion, putVersion } from '#src/notebook/saved/notebook-versions.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { DeliveryRetention } from '#src/operate/retention/delivery-retention.ts';
import { Retention } from '#src/operate/retention/retention.ts';
import { RunRetention } from '#src/operate/retention/run-retention.ts';
import { VersionRetention } from '#src/operate/retention/version-retention.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { assetRecords } from '#storage/records/assets.ts';
import { auditedQueries, auditRecords } from '#storage/records/audit.ts';
import { blobRecords, blobUses } from '#storage/records/blobs.ts';
import { deliveryRecords, hookBooks, hookRecords } from '#storage/records/hooks.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { notebookVersionContents } from '#storage/records/notebooks.ts';
import { runIndex, runRecords, runSummaries } from '#storage/records/runs.ts';
import { Removals } from '#storage/removals.ts';
import { addWorkspaces, rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';
import { testContext } from '#test/support/test-context.ts';

const DAY_MS = 86_400_000;
const SESSION = 'nb_1' as SessionId;
const WORKSPACES = ['ws_1', 'ws_10', 'ws_2'] as WorkspaceId[];
const FOREVER = {
  keepRunsDays: 0,
  keepOutputsDays: 0,
  keepVersionsDays: 0,
  keepDeliveriesDays: 0,
  keepAuditDays: 0,
};
const PARTS = [{ type: 'final-answer', markdown: 'x'.repeat(10_000) }];

/** Runs and audit entries of now, and a server's retention some days later. */
async function open(
  t: TestContext,
  settings: Partial<typeof FOREVER>,
  owns: (workspaceId: string, sessionId?: string) => boolean = () => true,
) {
  const { store } = await temporaryStore(t);
  const removals = new Removals(store, (error) => assert.ifError(error));
  const runs = new RunRepository(store, new ActorRuntime(store, rememberingLog().log));
  const deletion = new RunDeletion(store, runs, removals);
  const audit = new AuditTrail(store);
  const clock = { days: 0 };
  const contextOf = (owns: (workspaceId: string, sessionId?: string) => boolean) =>
    testContext<PlaneContext>({
      config: { ...FOREVER, ...settings },
      store,
      cluster: { owns },
      removals,
      log: { error: ({ err }: { readonly err: unknown }) => assert.ifError(err) },
    });
  const retentionOf = (own: typeof owns) =>
    new Retention(contextOf(own), {
      runs: new RunRetention(store, deletion, own),
      versions: new VersionRetention(store, own),
      deliveries: new DeliveryRetention(store),
      audit,
      clock: { isHeld: false, check: async () => true, confirm: async () => undefined },
      now: () => Date.now() + clock.days * DAY_MS,
    });
  const finish = (workspaceId: WorkspaceId, runId: RunId, assets = 0) => {
    const asset = { mimetype: 'text/plain', sha256: 'a', bytes: Buffer.from('x') };
    const named = Array.from({ length: assets }, () => [newId<AssetId>('asset'), asset] as const);
    const output = { stored: true, parts: PARTS };
    runs.finish(workspaceId, runId, { status: 'completed', error: null, output, assets: new Map(named) });
    return runId;
  };
  const begin = (workspaceId: WorkspaceId, session = SESSION) =>
    runs.begin({ workspaceId, sessionId: session, kind: 'notebook', input: {} }).runId;
  const shown = (runId: RunId) => JSON.parse(Buffer.from(runs.reader.json(WORKSPACES[0]!, runId)).toString());
  const sweepAfter = async (days: number, own = owns) => {
    clock.days = days;
    await retentionOf(own).sweep();
    for (const workspaceId of WORKSPACES)
      for (const [runId = ''] of [...store.listKeys(assetRecords, workspaceId, [], 1000)])
        while (removals.isPending({ kind: 'run', workspaceId, home: SESSION, id: runId })) {
          await new Promise(setImmediate);
          await store.durable();
        }
    await store.durable();
  };
  return { store, removals, runs, audit, begin, finish, shown, sweepAfter };
}

test('ended runs are deleted some days after their submission, in every workspace, and other runs stay', async (t) => {
  const { store, removals, runs, begin, finish, sweepAfter } = await open(t, { keepRunsDays: 7 });
  const going = begin(WORKSPACES[0]!);
  for (const workspaceId of WORKSPACES)
    for (let i = 0; i < 50; i++) finish(workspaceId, begin(workspaceId), i % 3);
  await store.durable();
  await sweepAfter(6.9);
  assert.equal([...store.listKeys(runRecords, WORKSPACES[1]!, [], 1000)].length, 50);
  await sweepAfter(7.1);
  for (const kind of [runRecords, runIndex, runSummaries, assetRecords, blobRecords, blobUses]) {
    const left = WORKSPACES.flatMap((one) => [...store.listKeys(kind, one, [], 1000)]).flat();
    assert.deepEqual(left, kind === runRecords || kind === runIndex ? [going] : [], kind.name);
  }
  assert.equal(runs.reader.exists(WORKSPACES[0]!, going), true);
  removals[Symbol.dispose]();
});

test('an earlier version of a notebook is deleted some days after the change that replaced it, and the notebook stays', async (t) => {
  const { store, sweepAfter } = await open(t, { keepVersionsDays: 7 });
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  const [workspaceId] = WORKSPACES as [WorkspaceId];
  addWorkspaces(store, workspaceId);
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) {
    const { document } = await notebooks.create(workspaceId, { title: 'First' }, 'ada');
    const change = { expectedUpdatedAt: document.updatedAt, by: 'bob' };
    await notebooks.patch(workspaceId, document.id, { title: 'Second' }, change);
    ids.push(document.id);
  }
  await store.durable();
  const counts = () => ids.map((id) => notebooks.versions(workspaceId, id).length);
  await sweepAfter(6.9);
  assert.deepEqual(new Set(counts()), new Set([2]));
  await sweepAfter(7.1, (_, id) => id !== ids[29]);
  assert.deepEqual(
    counts(),
    ids.map((id) => (id === ids[29] ? 2 : 1)),
  );
  assert.equal([...store.listKeys(notebookVersionContents, workspaceId, [], 1000)].length, 1);
});

test('a version that was current until recently stays, even if it began long ago', async (t) => {
  const { store, sweepAfter } = await open(t, { keepVersionsDays: 7 });
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  const [workspaceId] = WORKSPACES as [WorkspaceId];
  addWorkspaces(store, workspaceId);
  const { document } = await notebooks.create(workspaceId, { title: 'Old' }, 'ada');
  const began = new Date(Date.now() - 30 * DAY_MS).toISOString();
  const old = { ...document, updatedAt: began };
  const json = Buffer.from(JSON.stringify(old));
  const version = atOnce(encodeVersion(old, json, new Date().toISOString()));
  store.write((tx) => putVersion(tx, workspaceId, document.id, version));
  await store.durable();
  await sweepAfter(6.9);
  assert.equal(notebooks.versions(workspaceId, document.id).at(-1)?.updatedAt, began);
  assert.deepEqual(Buffer.from(notebooks.version(workspaceId, document.id, began)), json);
  await sweepAfter(7.1);
  assert.equal(notebooks.versions(workspaceId, document.id).length, 1);
});

test('after outputs of a run are deleted, the record of the run names the deletion, has another entity tag, and is not examined again', async (t) => {
  const { store, removals, runs, begin, finish, shown, sweepAfter } = await open(t, { keepOutputsDays: 7 });
  const [workspaceId] = WORKSPACES;
  const old = Array.from({ length: 30 }, () => finish(workspaceId!, begin(workspaceId!), 2));
  const going = begin(workspaceId!);
  const after = finish(workspaceId!, begin(workspaceId!));
  await store.durable();
  const before = runs.reader.served(workspaceId!, old[0]!).version;
  await sweepAfter(8);
  for (const runId of old) assert.deepEqual(shown(runId).output, { stored: false, parts: [] });
  assert.notEqual(runs.reader.served(workspaceId!, old[0]!).version, before);
  assert.deepEqual([...store.listKeys(assetRecords, workspaceId!, [], 10)], []);
  assert.deepEqual(shown(after).output.parts, PARTS, 'an older run is in progress');
  finish(workspaceId!, going);
  await store.durable();
  await sweepAfter(8);
  for (const runId of [going, after]) assert.deepEqual(shown(runId).output, { stored: false, parts: [] });
  removals[Symbol.dispose]();
});

test('entries of the audit are deleted after some days', async (t) => {
  const { store, removals, audit, sweepAfter } = await open(t, { keepAuditDays: 30 });
  const [workspaceId] = WORKSPACES;
  const principal: Principal = JSON.parse(JSON.stringify({ workspaceId, userId: 'ada', tokenId: 'tok_1' }));
  const change = { action: 'member.add', target: 'bob', outcome: 'done' } as const;
  store.write((tx) => tx.put(workspaceRecords, { name: '', createdAt: '', owners: 1 }, workspaceId!));
  for (let i = 0; i < 500; i++) audit.note({ principal, address: '', requestId: '' }, change);
  await store.durable();
  const count = () =>
    [auditRecords, auditedQueries].flatMap((kind) => [...store.listKeys(kind, workspaceId!, [], 1000)])
      .length;
  await sweepAfter(29);
  assert.equal(count(), 500);
  await sweepAfter(31);
  assert.equal(count(), 0);
  removals[Symbol.dispose]();
});

test('a delivery of a hook is deleted some days after its end, by the home of the workspace, and one that waits stays', async (t) => {
  let isHome = false;
  const { store, removals, sweepAfter } = await open(t, { keepDeliveriesDays: 7 }, () => isHome);
  const [workspaceId] = WORKSPACES as [WorkspaceId];
  const nowMs = Date.now();
  const ended = (days: number) => new Date(nowMs + days * DAY_MS).toISOString();
  const record = { ownerId: 'ada', createdAt: '', updatedAt: '', secrets: [], definition: new Uint8Array() };
  const hooks = Array.from({ length: 3 }, () => newId<HookId>('hook'));
  const kept: string[] = [];
  for (const hookId of hooks)
    store.write((tx) => {
      tx.put(hookRecords, record, workspaceId, hookId);
      tx.put(hookBooks, { place: null, pending: 1, stored: 252 }, workspaceId, hookId);
      // One waits, and one was sent again a day later.
      for (const finishedAt of [null, ended(1), ...Array.from({ length: 250 }, () => ended(0))]) {
        const id = newId<DeliveryId>('delivery');
        tx.put(deliveryRecords, Buffer.from(JSON.stringify({ id, finishedAt })), workspaceId, hookId, id);
        if (finishedAt !== ended(0)) kept.push(id);
      }
    });
  await store.durable();
  const left = () => hooks.flatMap((id) => [...store.listKeys(deliveryRecords, workspaceId, [id], 1000)]);
  const counted = () => hooks.map((id) => store.get(hookBooks, workspaceId, id)?.stored);
  await sweepAfter(7.5);
  assert.equal(left().length, 3 * 252);
  isHome = true;
  await sweepAfter(6.9);
  assert.equal(left().length, 3 * 252);
  await sweepAfter(7.5);
  assert.deepEqual(
    left().map(([, id]) => id),
    kept,
  );
  assert.deepEqual(counted(), [2, 2, 2]);
  await sweepAfter(8.1);
  assert.deepEqual([left().length, ...counted()], [3, 1, 1, 1]);
  removals[Symbol.dispose]();
});

test('nothing is deleted because of its age unless a setting demands it', async (t) => {
  const { store, removals, begin, finish, shown, sweepAfter } = await open(t, {});
  const runId = finish(WORKSPACES[0]!, begin(WORKSPACES[0]!), 1);
  await store.durable();
  await sweepAfter(36_500);
  assert.deepEqual(shown(runId).output.parts, PARTS);
  removals[Symbol.dispose]();
});

/** The notebooks of two workers: those of the second one end in `b`. */
const SESSIONS = ['nb_1a', 'nb_1b', 'nb_2a', 'nb_2b'] as SessionId[];
const ownsFirst = (_workspaceId: string, sessionId?: string) => sessionId?.endsWith('a') === true;

test('old runs of notebooks are deleted only by the worker that is the home of the notebook', async (t) => {
  const { store, runs, begin, finish, sweepAfter } = await open(t, { keepRunsDays: 7 }, ownsFirst);
  const [workspaceId] = WORKSPACES;
  const made = Array.from({ length: 90 }, (_, n) => {
    const session = SESSIONS[n % 4]!;
    return { session, runId: finish(workspaceId!, begin(workspaceId!, session)) };
  });
  await store.durable();
  await sweepAfter(8);
  for (const { session, runId } of made)
    assert.equal(runs.reader.exists(workspaceId!, runId), session.endsWith('b'), session);
});

test('each worker stores its own progress in deleting outputs, so no worker deletes or skips outputs of another worker', async (t) => {
  const settings = { keepOutputsDays: 7 };
  const first = await open(t, settings, ownsFirst);
  const [workspaceId] = WORKSPACES;
  const made = Array.from({ length: 90 }, (_, n) => {
    const session = SESSIONS[n % 4]!;
    return { session, runId: first.finish(workspaceId!, first.begin(workspaceId!, session)) };
  });
  await first.store.durable();
  await first.sweepAfter(8);
  const isTrimmed = (runId: RunId) => first.shown(runId).output.parts.length === 0;
  for (const { session, runId } of made) assert.equal(isTrimmed(runId), session.endsWith('a'), session);
  await first.sweepAfter(8, (...home) => !ownsFirst(...home));
  for (const { session, runId } of made) assert.equal(isTrimmed(runId), true, session);
});

test('a run in progress delays the deletion of outputs in its own session only', async (t) => {
  const { store, begin, finish, shown, sweepAfter } = await open(t, { keepOutputsDays: 7 });
  const [workspaceId] = WORKSPACES;
  begin(workspaceId!, SESSIONS[0]);
  const later = SESSIONS.slice(0, 2).map((session) => finish(workspaceId!, begin(workspaceId!, session)));
  await store.durable();
  await sweepAfter(8);
  assert.deepEqual(
    later.map((runId) => shown(runId).output.parts.length),
    [1, 0],
  );
});
