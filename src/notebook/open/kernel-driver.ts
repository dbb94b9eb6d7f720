/** The `kernel` actor of a notebook session: starts one kernel, carries out the chart's commands, reports facts. */

import { randomBytes } from 'node:crypto';
import { fromCallback } from 'xstate';
import type {
  DriverCommand,
  NotebookSessionEvent,
  SessionContext,
  Work,
} from '#machines/notebook-session.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import type { Log } from '#src/base/log/log.ts';
import type { CellEdits, Kernel, KernelLaunch, KernelSink } from '#src/confined/processes/kernel/kernel.ts';
import type { BridgeDone, KernelCall, KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import { prepareMessage } from './large-messages.ts';
import type { LiveNotebook } from './live-notebook.ts';
import type { LiveNotebooks } from './live-notebooks.ts';
import type { ConcludedWork } from './work-slot.ts';

/** The parts of the kernel plane that the driver needs. */
export interface Kernels {
  startKernel(launch: KernelLaunch, sink: KernelSink): Kernel;
}

/** Handles requests of one kernel's notebook code to its server. */
export interface KernelRpcHandler extends Disposable {
  /** Returns the parts of one answer, which the modules of notebooks read; never rejects. */
  call(method: string, fields: Readonly<Record<string, unknown>>): Promise<readonly (string | Uint8Array)[]>;
}

export interface KernelDriverPorts {
  readonly kernels: Kernels;
  readonly launchOf: (context: SessionContext, live: LiveNotebook) => KernelLaunch;
  /** Returns the handler for one kernel. `memoryShare` is the share with which the kernel was launched. */
  readonly rpcHandlerOf: (
    context: SessionContext,
    live: LiveNotebook,
    memoryShare: string,
  ) => KernelRpcHandler;
  /** Begins to remove the files that pages have sent to a session: its kernel cannot read them any more, or cannot know them yet. */
  readonly forgetFiles: (context: SessionContext) => void;
}

/** `liveNotebooks` has the notebook of each session, and `log` gets the reasons of failures. */
interface DriverContext {
  readonly liveNotebooks: Pick<LiveNotebooks, 'of'>;
  readonly log: Pick<Log, 'error'>;
}

export function kernelDriver({ liveNotebooks, log }: DriverContext, ports: KernelDriverPorts) {
  return fromCallback<DriverCommand, SessionContext>(({ input, receive, sendBack }) => {
    const report = (event: NotebookSessionEvent): void => sendBack(event);
    const live = liveNotebooks.of({ workspaceId: input.workspaceId, id: input.notebookId });
    const memoryShare = randomBytes(16).toString('hex');
    const rpcHandler = ports.rpcHandlerOf(input, live, memoryShare);
    const startedAt = performance.now();
    ports.forgetFiles(input);
    /** Whether the session has released its kernel, which may still send messages until its process has ended. */
    let isReleased = false;

    /** The session learns only that its kernel could not be driven; the log has the reason. */
    const logFailure = (error: unknown): void => {
      const facts = { err: error, sessionId: input.notebookId, work: live.work.current };
      log.error(facts, 'driving a kernel failed');
    };
    const logging = <T>(act: () => T): T => {
      try {
        return act();
      } catch (error) {
        logFailure(error);
        throw error;
      }
    };
    /** A kernel's messages must never end the server: when one cannot be handled, the kernel is killed. */
    const orKill = (act: () => void): void => {
      try {
        act();
      } catch (error) {
        logFailure(error);
        kernel.kill();
      }
    };

    const conclude = (concluded: ConcludedWork | undefined): void => {
      if (concluded !== undefined)
        report({ type: 'kernel.done', workId: concluded.workId, ...concluded.end });
    };

    /**
     * The edits that the kernel is carrying out; undefined when there are none. `next` are the edits that were made after them
     * and before the present work was accepted. Once all these edits are carried out, the functions in `waiting` are called.
     */
    let editing: { seq: number; next: CellEdits | undefined; readonly waiting: (() => void)[] } | undefined;
    let isUp = false;

    const carryOut = (edits: CellEdits): number => {
      const seq = kernel.edit(edits);
      live.editsGiven(edits);
      return seq;
    };

    /**
     * Gives the kernel the edits that it has not got yet. A kernel that has work gets them after that work, which runs the
     * notebook as it was when the work was accepted.
     */
    const giveEdits = (): void => {
      if (isReleased || !isUp || kernel.inFlight !== null || live.work.current !== undefined) return;
      const edits = live.takeEdits();
      if (edits !== undefined) editing = { seq: carryOut(edits), next: undefined, waiting: [] };
    };

    /** Begins work in the turn in which it was accepted, with the edits that were made before. */
    const begin = (work: Work): void => {
      const goOn = () =>
        orKill(() => {
          if (!isReleased) conclude(live.work.goOn(work, kernel));
        });
      const edits = live.hasEdits ? live.takeEdits() : undefined;
      if (editing !== undefined) editing.next = edits;
      else if (edits !== undefined) editing = { seq: carryOut(edits), next: undefined, waiting: [] };
      const { waiting } = editing ?? {};
      const edited = waiting && new Promise<void>((resolve) => waiting.push(resolve));
      live.work.begin(work, kernel, edited)?.then(goOn, () => undefined); // the store reports a failed commit
    };

    /** Takes the end of a command. */
    const done = (message: BridgeDone): void => {
      if (message.seq !== null && message.seq === editing?.seq) {
        const { next, waiting } = editing;
        if (next !== undefined) {
          editing = { seq: carryOut(next), next: undefined, waiting };
          return;
        }
        editing = undefined;
        for (const goOn of waiting) goOn();
        giveEdits();
      } else conclude(live.work.advance(message, kernel));
    };

    const answer = ({ id, method, fields }: KernelCall): void => {
      unawaited(
        rpcHandler.call(method, fields).then((parts) => kernel.answerCall(id, parts)),
        'kernel-driver: the answer to a call of a kernel',
      );
    };

    const kernel = logging(() =>
      ports.kernels.startKernel(
        { ...ports.launchOf(input, live), memoryShare },
        {
          installing: (step) => {
            if (isReleased) return;
            const wasInstalling = live.startup !== null;
            live.tellStartup(step === null ? null : { phase: 'packages', text: step });
            if (step === null && wasInstalling) report({ type: 'kernel.installed' });
            else if (step !== null && !wasInstalling) report({ type: 'kernel.installing' });
          },
          noted: (difference) => {
            if (!isReleased) live.note(difference);
          },
          ready: ({ phases }) =>
            orKill(() => {
              if (isReleased) return;
              faultPoint('kernel.ready');
              const totalMs = roundMs(performance.now() - startedAt);
              isUp = true;
              live.kernelReady(kernel);
              giveEdits();
              report({ type: 'kernel.ready', phases: { ...phases, totalMs } });
            }),
          prepare: (json) => prepareMessage(json, live.follower !== undefined),
          messages: (batch: readonly KernelMessage[]) =>
            orKill(() => {
              if (isReleased) return;
              live.apply(batch);
              for (const message of batch) {
                if (message.op === 'bridge-done') done(message);
                else if (message.op === 'kernel-call') answer(message);
              }
            }),
          exited: (exit) => {
            isUp = false; // the session ends the work, after which waiting edits would be given to this kernel
            rpcHandler[Symbol.dispose]();
            live.detachKernel(kernel, exit.message);
            report({
              type: 'kernel.exited',
              uptimeMs: performance.now() - startedAt,
              failure: { code: exit.cause, message: exit.message },
            });
          },
        },
      ),
    );
    live.attachKernel(kernel, input.mode);
    live.onEdits = () => orKill(giveEdits);

    const release = (): void => {
      isReleased = true;
      rpcHandler[Symbol.dispose]();
      live.detachKernel(kernel);
      kernel.stop();
      ports.forgetFiles(input);
    };
    receive((command) => {
      try {
        switch (command.type) {
          case 'execute':
            begin(command.work);
            return;
          case 'interrupt':
            live.work.requestCancel();
            live.letKernelSpeak();
            if (editing === undefined) kernel.interrupt(); // an interrupt never stops edits; the work waits until they are made
            return;
          case 'kill':
            kernel.kill();
            return;
          case 'stop':
            kernel.stop();
        }
      } catch (error) {
        logFailure(error);
        release(); // XState does not stop an actor that throws
        throw error;
      }
    });
    return release;
  });
}

function roundMs(ms: number): number {
  return Math.round(ms * 100) / 100;
}
