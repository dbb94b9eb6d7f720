import assert from 'node:assert/strict';
import test from 'node:test';
import { createActor } from 'xstate';
import type { Kernel, KernelSink } from '#src/kernel/kernel.ts';
import { kernelDriver } from '#src/notebook/kernel-driver.ts';
import type { LiveNotebook } from '#src/notebook/live-notebook.ts';
import type { WorkPlan } from '#src/notebook/work.ts';

const WORK = { kind: 'run', id: 'run_1' } as const;

test('a kernel whose order throws is let go of all the same', () => {
  const { actor, log } = startDriver(() => {
    throw new Error('write EPIPE');
  });
  const failures: unknown[] = [];
  actor.subscribe({ error: (error) => failures.push((error as Error).message) });
  actor.send({ type: 'execute', work: WORK });
  assert.deepEqual([failures, log], [['write EPIPE'], ['attach', 'begin', 'detach', 'stop']]);
});

test('a driver that is stopped lets its kernel go once', () => {
  const { actor, log } = startDriver(() => 1);
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

/** A driver of a kernel that only remembers; `step` is the one command of its work. */
function startDriver(step: (kernel: Kernel) => number) {
  const log: string[] = [];
  const note = (what: string) => () => {
    log.push(what);
  };
  const live: Partial<LiveNotebook> = {
    attachKernel: note('attach'),
    detachKernel: note('detach'),
    beginWork: note('begin'),
    letKernelSpeak: note('speak'),
  };
  const kernel: Partial<Kernel> = {
    kill: note('kill'),
    stop: note('stop'),
    interrupt: () => log.push('interrupt') > 0,
  };
  const plan: Partial<WorkPlan> = { steps: [step], cancelRequested: note('cancelRequested') };
  const driver = kernelDriver({
    kernels: { startKernel: (_: unknown, __: KernelSink) => kernel as Kernel },
    liveOf: () => live as LiveNotebook,
    launchOf: () => ({ id: 'nb_1', cwd: '/', env: {}, cells: [], appOptions: {} }),
    planOf: () => plan as WorkPlan,
  });
  const actor = createActor(driver, { input: {} as never }).start();
  return { actor, log };
}
