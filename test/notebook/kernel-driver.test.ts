import assert from 'node:assert/strict';
import test from 'node:test';
import { createActor } from 'xstate';
import type { Kernel, KernelSink } from '#src/confined/kernel/kernel.ts';
import { kernelDriver } from '#src/notebook/kernel-driver.ts';
import type { LiveNotebook } from '#src/notebook/live-notebook.ts';
import type { WorkPlan } from '#src/notebook/work/work-plan.ts';
import { WorkSlot } from '#src/notebook/work/work-slot.ts';
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
  const steps = ['first', 'second'].map((name, index) => () => {
    log.push(name);
    return index + 1;
  });
  const { actor, log, sink } = startDriver(steps);
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
  const steps = ['first', 'second'].map((name, index) => () => {
    log.push(name);
    return index + 1;
  });
  const { actor, log, sink } = startDriver(steps);
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
  const live: Partial<LiveNotebook> = {
    attachKernel: note('attach'),
    detachKernel: note('detach'),
    work,
    letKernelSpeak: note('speak'),
    apply: apply ?? note('apply'),
  };
  const kernel: Partial<Kernel> = {
    kill: note('kill'),
    stop: note('stop'),
    interrupt: () => log.push('interrupt') > 0,
  };
  const plan: Partial<WorkPlan> = {
    steps,
    cancelRequested: note('cancelRequested'),
    conclude: () => {
      log.push('conclude');
      return { status: 'completed', failure: null };
    },
  };
  work.offer(WORK, plan as WorkPlan, () => undefined);
  const driver = kernelDriver({
    kernels: {
      startKernel: (_: unknown, sink: KernelSink) => {
        sinks.push(sink);
        return kernel as Kernel;
      },
    },
    rpcHandlerOf: () => ({ call: async () => ['{}'], [Symbol.dispose]: () => undefined }),
    liveOf: () => live as LiveNotebook,
    launchOf: () => ({ id: 'nb_1', cwd: '/', env: {}, cells: [], appOptions: {} }),
    log: { error: ({ err }) => logged.push((err as Error).message) },
  });
  const actor = createActor(driver, { input: {} as never }).start();
  return { actor, log, logged, sink: () => sinks[0]! };
}
