/** The `kernel` actor of a notebook session: starts one kernel, carries out orders one after the other, reports facts. */
import { fromCallback } from 'xstate';
import type { KernelOrder, SessionContext, SessionEvent, Work } from '#machines/notebook-session.ts';
import { reach } from '#src/core/fault-points.ts';
import type { Kernel, KernelLaunch, KernelSink } from '#src/kernel/kernel.ts';
import type { BridgeDone, KernelMessage } from '#src/kernel/messages.ts';
import type { LiveNotebook } from './live-notebook.ts';
import type { WorkPlan } from './work.ts';

/** What the driver needs of the kernel plane. */
export interface Kernels {
  startKernel(launch: KernelLaunch, sink: KernelSink): Kernel;
}

export interface KernelDriverPorts {
  readonly kernels: Kernels;
  readonly liveOf: (context: SessionContext) => LiveNotebook;
  readonly launchOf: (context: SessionContext, live: LiveNotebook) => KernelLaunch;
  readonly planOf: (work: Work) => WorkPlan;
}

interface InFlight {
  readonly work: Work;
  readonly plan: WorkPlan;
  step: number;
  seq: number;
}

export function kernelDriver(ports: KernelDriverPorts) {
  return fromCallback<KernelOrder, SessionContext>(({ input, receive, sendBack }) => {
    const report = sendBack as (event: SessionEvent) => void;
    const live = ports.liveOf(input);
    const startedAt = performance.now();
    let current: InFlight | undefined;

    const advance = (done: BridgeDone): void => {
      if (current === undefined || done.seq !== current.seq) return;
      const next =
        done.error === null && !done.interrupted ? current.plan.steps[current.step + 1] : undefined;
      if (next !== undefined) {
        current.step++;
        current.seq = next(kernel);
        return;
      }
      const { work, plan } = current;
      current = undefined;
      const { status, failure } = plan.judge(done, live);
      report({ type: 'kernel.done', workId: work.id, status, failure });
    };

    const kernel = ports.kernels.startKernel(ports.launchOf(input, live), {
      ready: ({ phases, done }) => {
        reach('kernel.ready');
        live.takeVerdicts(done);
        report({
          type: 'kernel.ready',
          phases: { ...phases, totalMs: roundMs(performance.now() - startedAt) },
        });
      },
      messages: (batch: readonly KernelMessage[]) => {
        live.apply(batch);
        for (const message of batch) if (message.op === 'bridge-done') advance(message);
      },
      exited: (exit) => {
        live.detachKernel(kernel);
        report({
          type: 'kernel.exited',
          uptimeMs: performance.now() - startedAt,
          failure: { code: exit.cause, message: exit.message },
        });
      },
    });
    live.attachKernel(kernel);

    const obey = (order: KernelOrder): void => {
      switch (order.type) {
        case 'execute': {
          const plan = ports.planOf(order.work);
          live.beginWork(plan);
          const first = plan.steps[0];
          if (first === undefined) throw new Error('A piece of work has no command.');
          current = { work: order.work, plan, step: 0, seq: first(kernel) };
          return;
        }
        case 'interrupt':
          current?.plan.cancelRequested();
          live.letKernelSpeak();
          kernel.interrupt();
          return;
        case 'kill':
          kernel.kill();
          return;
        case 'stop':
          kernel.stop();
      }
    };
    const release = (): void => {
      live.detachKernel(kernel);
      kernel.stop();
    };
    receive((order) => {
      try {
        obey(order);
      } catch (error) {
        release(); // an actor that throws is not told to stop
        throw error;
      }
    });
    return release;
  });
}

function roundMs(ms: number): number {
  return Math.round(ms * 100) / 100;
}
