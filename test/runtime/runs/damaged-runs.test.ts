/**
 * Runs with a damaged record are deleted like others, and do not prevent the deletion of others.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { SessionId, WorkspaceId } from '#src/base/ids.ts';
import { DeliveryRetention } from '#src/operate/retention/delivery-retention.ts';
import { Retention } from '#src/operate/retention/retention.ts';
import { RunRetention } from '#src/operate/retention/run-retention.ts';
import { VersionRetention } from '#src/operate/retention/version-retention.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { RunDeletion } from '#src/runtime/runs/run-deletion.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { auditRecords } from '#storage/records/audit.ts';
import { endedRuns, runIndex, runRecords, sessionRuns, statusRuns } from '#storage/records/runs.ts';
import { Removals } from '#storage/removals.ts';
import { damage } from '#test/support/store/damage.ts';
import { addWorkspaces, rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';
import { testContext } from '#test/support/test-context.ts';

const DAY_MS = 86_400_000;
const HOME = 'ws_1' as WorkspaceId;
const SESSION = 'nb_1' as SessionId;
const RUN = { workspaceId: HOME, sessionId: SESSION, kind: 'notebook' } as const;
const FOREVER = {
  keepRunsDays: 0,
  keepOutputsDays: 0,
  keepVersionsDays: 0,
  keepDeliveriesDays: 0,
  keepAuditDays: 0,
};

async function open(t: TestContext) {
  const { store, path } = await temporaryStore(t);
  addWorkspaces(store, HOME);
  const removals = new Removals(store, (error) => assert.ifError(error));
  t.after(() => removals[Symbol.dispose]());
  const runs = new RunRepository(store, new ActorRuntime(store, rememberingLog().log));
  const deletion = new RunDeletion(store, runs, removals);
  /** Adds a run that has ended with this text. */
  const add = (text: string) => {
    const { runId } = runs.begin({ ...RUN, input: {} });
    const output = { stored: true, parts: [{ type: 'final-answer', markdown: text }] };
    runs.finish(HOME, runId, { status: 'completed', error: null, output, assets: new Map() });
    return runId;
  };
  const damageText = (text: string) => damage(join(path, 'data.mdb'), text);
  const faults: unknown[] = [];
  const sweep = async (settings: Partial<typeof FOREVER>, runsOf = new RunRetention(store, deletion)) => {
    const context = testContext<PlaneContext>({
      config: { ...FOREVER, ...settings },
      store,
      cluster: { owns: () => true },
      removals: { isPending: () => false },
      log: { error: ({ err }: { readonly err: unknown }) => faults.push(err) },
    });
    await new Retention(context, {
      runs: runsOf,
      versions: new VersionRetention(store),
      deliveries: new DeliveryRetention(store),
      audit: new AuditTrail(store),
      clock: { isHeld: false, check: async () => true, confirm: async () => undefined },
      now: () => Date.now() + 3 * DAY_MS,
    }).sweep();
    await store.durable();
  };
  return { store, runs, deletion, add, damageText, sweep, faults };
}

test('expired runs are deleted with their outputs, even after a damaged run', async (t) => {
  const { store, runs, add, damageText, sweep, faults } = await open(t);
  add('the text of the damaged run');
  const sound = add('another text');
  await store.durable();
  damageText('the text of the damaged run');
  await sweep({ keepOutputsDays: 1 });
  const { output } = JSON.parse(Buffer.from(runs.reader.json(HOME, sound)).toString());
  assert.deepEqual([output, faults], [{ stored: false, parts: [] }, []]);
  await sweep({ keepRunsDays: 1 });
  for (const kind of [runRecords, runIndex, sessionRuns])
    assert.deepEqual([...store.listKeys(kind, HOME, [], 10)], [], kind.name);
});

test('a run in progress is not deleted while its record is damaged', async (t) => {
  const { store, runs, damageText, sweep } = await open(t);
  const { runId } = runs.begin({ ...RUN, input: { code: 'the code of the damaged run' } });
  await store.durable();
  damageText('the code of the damaged run');
  await sweep({ keepRunsDays: 1 });
  assert.deepEqual([...store.listKeys(runRecords, HOME, [], 10)], [[runId]]);
});

test('the runs of a deleted session are removed from every list, including runs with damaged index entries', async (t) => {
  const { store, deletion, add, damageText } = await open(t);
  const runId = add('a text');
  store.write((tx) => {
    const entry = tx.get(runIndex, HOME, runId)!;
    tx.put(runIndex, { ...entry, createdAt: 'the time of the damaged entry' }, HOME, runId);
  });
  add('another text');
  await store.durable();
  damageText('the time of the damaged entry');
  assert.equal(deletion.removeRuns('notebook', HOME, SESSION), false);
  await store.durable();
  assert.equal(deletion.removeRuns('notebook', HOME, SESSION), true);
  for (const kind of [runRecords, runIndex, sessionRuns, statusRuns, endedRuns])
    assert.deepEqual([...store.listKeys(kind, HOME, [], 10)], [], kind.name);
});

test('damage that keeps runs from being deleted is reported, and entries of the audit are still deleted', async (t) => {
  const { store, sweep, faults } = await open(t);
  const audited = { userId: 'ada', tokenId: '', target: '', detail: null, address: '', requestId: '' };
  const record = { ...audited, at: '', action: 'member.add', outcome: 'done' } as const;
  store.write((tx) => tx.put(auditRecords, record, HOME, 'aud_00000000000000000000000000'));
  await store.durable();
  const fault = new Error('the runs could not be read');
  const failing = {
    deleteRuns: () => {
      throw fault;
    },
    deleteOutputs: () => undefined,
  };
  await sweep({ keepRunsDays: 1, keepAuditDays: 1 }, failing as unknown as RunRetention);
  assert.deepEqual(faults, [fault]);
  assert.deepEqual([...store.listKeys(auditRecords, HOME, [], 10)], []);
});

test('lists of runs leave out a run whose index entry is damaged', async (t) => {
  const { store, runs, add, damageText } = await open(t);
  const runId = add('a text');
  const sound = add('another text');
  store.write((tx) => {
    const entry = tx.get(runIndex, HOME, runId)!;
    tx.put(runIndex, { ...entry, createdAt: 'the time of the damaged entry' }, HOME, runId);
  });
  await store.durable();
  damageText('the time of the damaged entry');
  for (const query of [{}, { sessionId: SESSION }, { status: 'completed' as const }]) {
    const page = await runs.reader.list(HOME, { limit: 10, ...query });
    const { items } = JSON.parse(Buffer.from(page).toString()) as { items: { id: string }[] };
    assert.deepEqual(
      items.map(({ id }) => id),
      [sound],
    );
  }
});
