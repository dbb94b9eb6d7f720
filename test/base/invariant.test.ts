/** The rules that only a fault of the server breaks. Each test drives a real object wrongly. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { type AnyActorRef, createActor, fromCallback, type StateValue } from 'xstate';
import { type AgentSessionContext, agentSessionMachine } from '#machines/agent-session.ts';
import { unprovided } from '#machines/any-session.ts';
import { hookMachine, hookStatus } from '#machines/hook.ts';
import { jobMachine, jobStatus } from '#machines/job.ts';
import {
  type NotebookSessionEvent,
  notebookSessionMachine,
  sessionStatus,
} from '#machines/notebook-session.ts';
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { SessionId, WorkspaceId } from '#src/base/ids.ts';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { Invitations } from '#src/confined/nodes/invitation.ts';
import { PlainHost } from '#src/confined/processes/host/plain-host.ts';
import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import { connectorOf } from '#src/datasource/connectors/connection-schema.ts';
import { readSealed } from '#src/datasource/keys/sealed-connections.ts';
import { sealText } from '#src/datasource/keys/sealed-text.ts';
import { BodyMemory } from '#src/http/edge/body-memory.ts';
import { notebookPageRoutes } from '#src/http/routes/notebook-pages.ts';
import type { FrontEndRequest } from '#src/notebook/pages/notebook-pages.ts';
import { mergeStates } from '#src/operate/operators/cluster-state.ts';
import { authorize } from '#src/people/auth/permissions.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ChunkRing } from '#src/runtime/events/chunk-ring.ts';
import { StreamBudget } from '#src/runtime/events/stream-budget.ts';
import { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { submissionJson } from '#src/runtime/runs/submission.ts';
import { Charge } from '#src/workspace/files/file-charge.ts';
import { WaitingKernel } from '#src/workspace/packages/waiting-kernel.ts';
import { defineRecord } from '#storage/codec.ts';
import { runRecords } from '#storage/records/runs.ts';
import { Removals } from '#storage/removals.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import { WorkspacePermits } from '#storage/workspace-permits.ts';
import { prompt, start as startConversation } from '#test/machines/agent-session-fixture.ts';
import { execute, INPUT, open, ready, startSession } from '#test/machines/session-fixture.ts';
import { openUnsavedNotebook } from '#test/notebook/unsaved-notebook.ts';
import { box, startBoxes } from '#test/runtime/actors/boxes.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const COMPLETED = {
  status: 'completed',
  error: null,
  output: { stored: true, parts: [] },
  assets: new Map(),
} as const;

/** Returns the check that an error names this broken rule. */
function broken(rule: string) {
  return (error: unknown) => {
    assert.ok(error instanceof Error && error.name === 'BrokenInvariant', String(error));
    assert.ok(error.message.startsWith(rule), error.message);
    return true;
  };
}

test('a broken rule throws an error with the rule and the object that broke it, and a rule that holds costs nothing', () => {
  invariant(true, 'A rule holds.');
  assert.throws(() => invariant(false, 'A rule holds.'), { message: 'A rule holds.' });
  assert.throws(() => invariant(false, 'A rule holds.', 'run_1'), {
    message: 'A rule holds. Broken by: run_1.',
  });
});

test('a run that has ended in the store does not end again', async (t) => {
  const { store } = await temporaryStore(t);
  const [first, second] = [openRuns(t, store), openRuns(t, store)];
  const { runId } = first.begin({
    workspaceId: WORKSPACE,
    sessionId: 'nb_1' as SessionId,
    kind: 'notebook',
    input: {},
  });
  await store.durable();
  second.actors.restore({ workspaceId: WORKSPACE, id: runId }); // two processes have the actor of one run
  first.finish(WORKSPACE, runId, COMPLETED);
  assert.throws(() => second.cancel(WORKSPACE, runId, () => {}), broken('A run ends once.'));
});

test('a run without a record does not end', async (t) => {
  const { store } = await temporaryStore(t);
  const runs = openRuns(t, store);
  const { runId } = runs.begin({
    workspaceId: WORKSPACE,
    sessionId: 'nb_1' as SessionId,
    kind: 'notebook',
    input: {},
  });
  store.write((tx) => tx.remove(runRecords, WORKSPACE, runId));
  assert.throws(() => runs.finish(WORKSPACE, runId, COMPLETED), broken('A run that ends has a record.'));
});

test('an event with an earlier number is not put into the ring of a stream', () => {
  const ring = new ChunkRing();
  ring.push(new Uint8Array(1), 1, 3);
  ring.push(new Uint8Array(1), 5, 5);
  assert.throws(() => ring.push(new Uint8Array(1), 5, 6), broken('The ids of the events of a stream grow.'));
});

test('a permit or a place that is given back a second time is a fault', async (t) => {
  const { store } = await temporaryStore(t);
  const permits = new WorkspacePermits({
    ...{ store, kind: 'thing', limit: () => 0, workers: 2, own: 'a', livesElsewhere: () => false },
    ...{ inUse: () => 0, collect: async () => undefined, refusal: () => new Error('refused') },
  });
  const permit = await permits.take(WORKSPACE);
  permit[Symbol.dispose]();
  assert.throws(() => permit[Symbol.dispose](), broken('A permit is given back once.'));
  const place = new FairSemaphore({ width: 1, widthOfKey: 1, queueOfKey: 0 }).tryHold('a');
  place?.[Symbol.dispose]();
  assert.throws(() => place?.[Symbol.dispose](), broken('A place is given back once.'));
});

test('no more bytes are given back than were charged', async () => {
  const memory = new BodyMemory();
  memory.take('a', 10);
  memory.take('b', 10);
  assert.throws(
    () => memory.give('a', 11),
    broken('A workspace gives back only bytes that are charged to it.'),
  );
  const stream = { laggards: () => [], settle: () => {} };
  const budget = new StreamBudget(100);
  assert.throws(() => budget.charge(stream, -1), broken('A stream is charged for the bytes that it holds.'));
  const account = { changed: { bytes: 0, entries: 0 }, held: { bytes: 0, entries: 0 } };
  const charge = new Charge(account, async () => {}); // the quota forgets to note an admission
  await charge.folder();
  assert.throws(() => charge[Symbol.dispose](), broken('An upload gives back only what is charged for it.'));
});

test('a session takes work only while it has no work, and is busy only with work', (t) => {
  const { context } = startSession(t).session.getSnapshot();
  const work = { kind: 'run', id: 'run_1' } as const;
  assert.match(
    String(errorOfSession({ live: 'ready' }, { ...context, work }, {}, execute())),
    /A session that is not busy has no work\. Broken by: nb_1/,
  );
  const forgetful = { takeWork: () => undefined };
  const busy = errorOfSession('closed', context, forgetful, open, ready, execute());
  assert.match(String(busy), /A busy session has work\. Broken by: nb_1/);
});

test('a conversation takes a run only while it has no run, and is busy only with a run', (t) => {
  const { context } = startConversation(t).session.getSnapshot();
  const run = { id: 'run_0' } as unknown as NonNullable<typeof context.run>;
  assert.match(
    String(errorOfConversation({ ...context, run }, {})),
    /A conversation that is not busy has no run\. Broken by: conv_1/,
  );
  const forgetful = { takeRun: () => undefined };
  assert.match(
    String(errorOfConversation(context, forgetful)),
    /A busy conversation has a run\. Broken by: conv_1/,
  );
});

test('a transaction that a callback keeps after its end writes nothing', async (t) => {
  const { store } = await temporaryStore(t);
  const pets = defineRecord<string>('pet', 1);
  let kept: Transaction | undefined;
  store.write((tx) => {
    kept = tx;
    tx.put(pets, 'cat', WORKSPACE, 'p1');
  });
  const late = () => kept?.put(pets, 'dog', WORKSPACE, 'p1');
  assert.throws(late, broken('A transaction writes only until its callback returns.'));
  assert.equal(kept?.get(pets, WORKSPACE, 'p1'), 'cat');
});

test('an address gets no second actor', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  assert.throws(() => actors.spawn(box('a'), { id: 'a' }), broken('An address has one actor.'));
});

test('a removal of a kind that nobody has declared is a fault', async (t) => {
  const { store } = await temporaryStore(t);
  const faults: unknown[] = [];
  using removals = new Removals(store, (error) => faults.push(error));
  store.write((tx) => removals.add(tx, { kind: 'thing', workspaceId: WORKSPACE, home: 'nb_1', id: 'a' }));
  await eventually('the removal has failed', () => faults.length > 0);
  assert.throws(() => {
    throw faults[0];
  }, broken('A kind of removal is declared before it is noted.'));
});

test('a datasource whose connection is missing from the store is a fault', async (t) => {
  const { store } = await temporaryStore(t);
  const ref = { workspaceId: WORKSPACE, slug: 'sales', revision: 1 };
  const read = () => readSealed(store, { ringWith: () => assert.fail() } as never, ref);
  assert.throws(read, broken('A datasource has a sealed connection.'));
});

test('a notebook is edited only in edit mode, and edits name only existing cells', () => {
  const { live } = openUnsavedNotebook({ a: '1' }, {});
  const override = () => live.override([{ cellId: 'b', code: '1' }], 'ada');
  assert.throws(override, broken('The cells of an accepted request exist.'));
  live.attachKernel({ resume() {} } as unknown as Kernel, 'run');
  const edit = () => live.edit([{ type: 'set-code', cellId: 'a', code: '2' }], 'ada', null);
  assert.throws(edit, broken('Only a session in edit mode edits its notebook.'));
});

test('a caller that breaks the rule of a part gets an error with the rule', async () => {
  const sink = { ready() {}, messages() {}, exited() {} };
  const waiting = new WaitingKernel('k1', sink, () => new Promise(() => {}));
  const plainHost = new PlainHost(() => assert.fail());
  const principal = { role: 'owner', scopes: [] } as unknown as Parameters<typeof authorize>[0];
  const calls: Readonly<Record<string, () => unknown>> = {
    'A kernel gets commands once it is ready.': () => waiting.execute({ cellIds: [], codes: [] }),
    'An action is declared.': () => authorize(principal, 'fly'),
    'A stored connection has a kind with a connector.': () => connectorOf('abacus'),
    'A keyring has its active key.': () => sealText({ active: 'k2', keys: new Map() }, 'backup', 'text'),
    'The digest of an authority has 32 bytes.': () => new Invitations(Buffer.alloc(31)),
    'A server has at least one worker.': () => mergeStates([], 0),
    'The plain kernel host starts before its kernels.': () =>
      plainHost.startKernel({ id: 'k1' } as never, sink),
    'A submitted run has JSON.': () => submissionJson({ runId: 'run_1', lastEventId: '', json: [] } as never),
    'A chart that runs has all its ports.': unprovided('kernel'),
    'Each state of a job has a status.': () => jobStatus({ matches: () => false } as never),
    'Each state of a hook has a status.': () => hookStatus({ matches: () => false } as never),
    'Each state of a notebook session has a status.': () => sessionStatus({ matches: () => false } as never),
  };
  for (const [rule, call] of Object.entries(calls)) assert.throws(call, broken(rule), rule);
});

test('a job that works has an occurrence', () => {
  const context = { jobId: 'job_1', occurrence: null } as never;
  const snapshot = jobMachine.resolveState({ value: { active: 'due' }, context } as never);
  const actor = createActor(jobMachine, { snapshot, input: context });
  const error = errorAfter(actor, [{ type: 'begun', runId: 'run_1' }] as never[]);
  broken('An active job has an occurrence.')(error);
});

test('a hook that sends has a delivery', () => {
  const context = { hookId: 'hook_1', delivery: null } as never;
  const snapshot = hookMachine.resolveState({ value: 'sending', context } as never);
  const actor = createActor(hookMachine, { snapshot, input: context });
  const error = errorAfter(actor, [{ type: 'failed', retryAtMs: 1 }] as never[]);
  broken('A hook that sends has a delivery.')(error);
});

test('only a request of a page that is known to be audited writes into the audit', () => {
  const noted: unknown[] = [];
  const answer = ({ note }: FrontEndRequest) => {
    note({ action: 'session.close', target: 'nb_1', outcome: 'done' });
    return 'success';
  };
  const audit = { note: (...entry: unknown[]) => noted.push(entry) };
  const parts = { audit, pages: { answer }, sessions: { prepare: () => undefined } };
  const routes = notebookPageRoutes(parts as never, parts as never);
  const route = routes.find(({ operationId }) => operationId === 'sendFromNotebookPage')!;
  const send = (path: string) => route.handle({ principal: {}, params: { path }, headers: {} } as never);
  send('kernel/shutdown');
  assert.equal(noted.length, 1);
  const rule = 'A request of a page that the audit notes is among the audited ones.';
  assert.throws(() => send('document/transaction'), broken(rule));
});

/**
 * Rules that no test can break from outside, because nearby code makes the fact true. They are in the code
 * for the compiler.
 */
const ONLY_FOR_THE_COMPILER = new Set([
  'A count of files that was awaited has a result.',
  'A kernel host that has started has a zygote.',
  'A notebook makes all changes of a plan that it has checked.',
  'A prompt in progress has a turn.',
  'A proxy that listens has a port.',
  'A request to a model belongs to a call.',
  'A worker opens a feed before it names the feed, on the same connection.',
  'A worker that asks others has a receiver of feeds.',
  'Each variant has a constant as its tag.',
  'Only a server with a local model asks it.',
  'The SDK asks for the server of a request that it was given.',
  'Tools are called after the first step of the model.',
]);

test('each rule that the source checks is broken by a test, or listed here as impossible to break', () => {
  const rules = ['src', 'machines', 'storage']
    .flatMap(textsIn)
    .flatMap((text) => [...text.matchAll(/\binvariant\([^;]*?'([A-Z][^']*\.)'/g)].map(([, rule]) => rule!));
  const tests = textsIn('test').map((text) => text.replaceAll('\\', ''));
  assert.ok(rules.length > 40, `${rules.length} rules were found`);
  const inTest = (rule: string) => tests.some((text) => text.includes(rule.slice(0, -1)));
  assert.deepEqual(rules.filter((rule) => !inTest(rule) && !ONLY_FOR_THE_COMPILER.has(rule)).sort(), []);
});

/** Returns the texts of the TypeScript files in a folder of the checkout. */
function textsIn(folder: string): string[] {
  const path = join(PACKAGE_ROOT, folder);
  const files = readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  return files.map((file) => readFileSync(join(path, file), 'utf8'));
}

function openRuns(t: TestContext, store: Store): RunRepository {
  const actors = new ActorRuntime(store, rememberingLog().log);
  t.after(() => actors.stopAll());
  return new RunRepository(store, actors);
}

/** Returns the error of a session that is put into a state, or is made of actions, that it cannot have. */
function errorOfSession(
  value: StateValue,
  context: object,
  actions: object,
  ...events: NotebookSessionEvent[]
): unknown {
  const machine = notebookSessionMachine.provide({
    actors: { kernel: fromCallback(() => {}) },
    actions: { endWork: () => {}, closeBound: () => {}, release: () => {}, ...actions },
  });
  const snapshot = machine.resolveState({ value, context } as never);
  const actor = createActor(machine, { snapshot, input: INPUT });
  return errorAfter(actor, events);
}

/** Returns the error of a conversation that is given a prompt with a context that it cannot have. */
function errorOfConversation(context: object, actions: object): unknown {
  const nothing = fromCallback<{ type: 'stop' }, AgentSessionContext>(() => {});
  const machine = agentSessionMachine.provide({
    actors: { think: nothing, act: nothing },
    actions: { endRun: () => {}, release: () => {}, ...actions },
  });
  const snapshot = machine.resolveState({ value: { open: 'ready' }, context } as never);
  const actor = createActor(machine, { snapshot, input: context as never });
  return errorAfter(actor, [prompt()]);
}

/** Starts the actor, sends the events, and returns the error with which the actor fails. */
function errorAfter<Event>(
  actor: Pick<AnyActorRef, 'subscribe' | 'start'> & { send(event: Event): void },
  events: readonly Event[],
): unknown {
  const errors: unknown[] = [];
  actor.subscribe({ error: (error) => void errors.push(error) });
  actor.start();
  for (const event of events) actor.send(event);
  return errors[0];
}
