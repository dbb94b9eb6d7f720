import assert from 'node:assert/strict';
import test from 'node:test';
import { createActor } from 'xstate';
import type { Kernel, KernelSink } from '#src/confined/processes/kernel/kernel.ts';
import { kernelDriver } from '#src/notebook/open/kernel-driver.ts';
import type { LiveNotebook } from '#src/notebook/open/live-notebook.ts';
import type { WorkPlan } from '#src/notebook/open/work-plan.ts';
import { WorkSlot } from '#src/notebook/open/work-slot.ts';
import { done } from './kernel-messages.ts';

const WORK = { kind: 'run', id: 'run_1' } as const;

test('a kernel is released even if stopping it throws', () => {
  const { actor, log, logged } = startDriver([
    () => {
      throw new Error('write EPIPE');
    },
  ]);
  const failures: unknown[] = [];
  actor.subscribe({ error: (error) => failures.push((error as Error).message) });
  actor.send({ type: 'execute', work: WORK });
  assert.deepEqual([failures, log], [['write EPIPE'], ['attach', 'begin', 'detach', 'stop']]);
  assert.deepEqual(logged, ['write EPIPE']);
});

test('a stopped driver releases its kernel once', () => {
  const { actor, log } = startDriver([() => 1]);
  actor.send({ type: 'execute', work: WORK });
  actor.send({ type: 'interrupt' });
  actor.send({ type: 'kill' });
  actor.stop();
  assert.deepEqual(log, [
    'attach',
    'begin',
    'cancelRequested',
    'speak',
    'interrupt',
    'kill',
    'detach',
    'stop',
  ]);
});

test('work that is cancelled between two of its commands gets no further command', () => {
  const step = (name: string, seq: number) => () => {
    log.push(name);
    return seq;
  };
  const { actor, log, sink } = startDriver([step('first', 1), step('second', 2)]);
  actor.send({ type: 'execute', work: WORK });
  actor.send({ type: 'interrupt' });
  sink().messages([done({}, { seq: 1 })]);
  assert.deepEqual(log, [
    'attach',
    'begin',
    'first',
    'cancelRequested',
    'speak',
    'interrupt',
    'apply',
    'conclude',
  ]);
});

test('work that is not cancelled gets its commands one after the other', () => {
  const step = (name: string, seq: number) => () => {
    log.push(name);
    return seq;
  };
  const { actor, log, sink } = startDriver([step('first', 1), step('second', 2)]);
  actor.send({ type: 'execute', work: WORK });
  sink().messages([done({}, { seq: 1 })]);
  sink().messages([done({}, { seq: 2 })]);
  assert.deepEqual(log, ['attach', 'begin', 'first', 'apply', 'second', 'apply', 'conclude']);
});

test('messages of a released kernel are ignored', () => {
  const { actor, log, sink } = startDriver([() => 1]);
  actor.send({ type: 'execute', work: WORK });
  actor.stop();
  sink().messages([done({}, { seq: 1 })]);
  assert.deepEqual(log, ['attach', 'begin', 'detach', 'stop']);
});

test('a kernel whose message cannot be handled is killed, and the log has the reason', () => {
  const { log, logged, sink } = startDriver([() => 1], () => {
    throw new Error('no room');
  });
  sink().messages([done({}, { seq: 1 })]);
  assert.deepEqual([log, logged], [['attach', 'kill'], ['no room']]);
});

test('work waits for the edits that were made before it was accepted, and later edits wait for its end', async () => {
  const { log, sink, edit, finish, accept, endWork } = startDriver([commandOf('run')]);
  sink().ready({ phases: { forkMs: 0, connectMs: 0, openMs: 0 }, pid: 1 });
  endWork();
  edit('a');
  edit('b'); // the kernel carries out the first edit
  accept();
  edit('c');
  finish(1);
  edit('d');
  assert.deepEqual(commands(log), ['edit a', 'edit b']);
  finish(2);
  await Promise.resolve(); // the work goes on once its promise has resolved
  edit('e');
  assert.deepEqual(commands(log), ['edit a', 'edit b', 'run']);
  finish(3);
  endWork();
  assert.deepEqual(commands(log), ['edit a', 'edit b', 'run', 'edit c, d, e']);
});

test('edits that wait for the end of work are not sent to a kernel that has ended', () => {
  const { log, logged, sink, edit, finish, accept, endWork } = startDriver([commandOf('run')]);
  sink().ready({ phases: { forkMs: 0, connectMs: 0, openMs: 0 }, pid: 1 });
  endWork();
  accept();
  finish(1);
  edit('a');
  sink().exited({ cause: 'kernel_exited', message: 'The kernel has ended.', code: 1, signal: null });
  endWork(); // as the session does when it hears of the end
  assert.deepEqual([commands(log), logged], [['run'], []]);
});

test('a cancelled run does not get edits that were made after it was accepted', async () => {
  const { actor, log, sink, edit, finish, accept, endWork } = startDriver([commandOf('run')]);
  sink().ready({ phases: { forkMs: 0, connectMs: 0, openMs: 0 }, pid: 1 });
  endWork();
  edit('a');
  accept();
  edit('b');
  actor.send({ type: 'interrupt' });
  finish(1);
  await Promise.resolve();
  assert.deepEqual(commands(log), ['edit a']);
  assert.ok(log.includes('conclude'));
  endWork();
  assert.deepEqual(commands(log), ['edit a', 'edit b']);
});

/** Notes that work begins. */
class NotingSlot extends WorkSlot {
  readonly #note: () => void;

  constructor(note: () => void) {
    super();
    this.#note = note;
  }

  override begin(...args: Parameters<WorkSlot['begin']>): Promise<void> | undefined {
    this.#note();
    return super.begin(...args);
  }
}

/** A driver of a kernel that only remembers; `steps` are the commands of its work. */
function startDriver(steps: WorkPlan['steps'], apply?: () => void) {
  const log: string[] = [];
  const logged: string[] = [];
  const sinks: KernelSink[] = [];
  const note = (what: string) => () => {
    log.push(what);
  };
  const work = new NotingSlot(note('begin'));
  let edited: string[] = [];
  let inFlight: number | null = null;
  let seq = 0;
  const live: Partial<LiveNotebook> = {
    hasEdits: false,
    takeEdits() {
      const codes = Object.fromEntries(edited.map((id) => [id, '']));
      edited = [];
      live.hasEdits = false;
      return Object.keys(codes).length === 0 ? undefined : { codes, configs: {}, deleteIds: [] };
    },
    editsGiven: () => undefined,
    kernelReady: () => undefined,
    attachKernel: note('attach'),
    detachKernel: note('detach'),
    work,
    letKernelSpeak: note('speak'),
    apply: apply ?? note('apply'),
  };
  const command = (what: string): number => {
    log.push(what);
    inFlight = ++seq;
    return seq;
  };
  const kernel: Partial<Kernel> = {
    get inFlight() {
      return inFlight;
    },
    edit: ({ codes }) => command(`edit ${Object.keys(codes).join(', ')}`),
    execute: ({ cellIds }) => command(cellIds.join()),
    kill: note('kill'),
    stop: note('stop'),
    interrupt: () => log.push('interrupt') > 0,
  };
  const plan: Partial<WorkPlan> = {
    steps,
    cancelRequested: note('cancelRequested'),
    ended: () => undefined,
    conclude: () => {
      log.push('conclude');
      return { status: 'completed', failure: null };
    },
  };
  work.offer(WORK, plan as WorkPlan, () => undefined);
  const context = {
    liveNotebooks: { of: () => live as LiveNotebook },
    log: { error: ({ err }: { readonly err?: unknown }) => logged.push((err as Error).message) },
  };
  const driver = kernelDriver(context, {
    kernels: {
      startKernel: (_: unknown, sink: KernelSink) => {
        sinks.push(sink);
        return kernel as Kernel;
      },
    },
    rpcHandlerOf: () => ({ call: async () => ['{}'], [Symbol.dispose]: () => undefined }),
    forgetFiles: () => undefined,
    launchOf: () => ({ id: 'nb_1', cwd: '/', env: {}, cells: [], appOptions: {} }),
  });
  const actor = createActor(driver, { input: {} as never }).start();
  const edit = (cellId: string) => {
    edited.push(cellId);
    live.hasEdits = true;
    live.onEdits?.();
  };
  const finish = (finished: number) => {
    inFlight = null;
    sinks[0]!.messages([done({}, { seq: finished })]);
  };
  const endWork = () => {
    work.end(WORK, { status: 'completed', failure: null });
    live.onEdits?.();
  };
  const accept = () => work.offer(WORK, plan as WorkPlan, () => actor.send({ type: 'execute', work: WORK }));
  return { actor, log, logged, sink: () => sinks[0]!, edit, finish, accept, endWork };
}

/** Returns a step of work that gives the kernel a command of this name. */
function commandOf(name: string): WorkPlan['steps'][number] {
  return (kernel) => kernel.execute({ cellIds: [name], codes: [] });
}

/** Returns the commands that the kernel has got. */
function commands(log: readonly string[]): string[] {
  return log.filter((entry) => entry === 'run' || entry.startsWith('edit '));
}
