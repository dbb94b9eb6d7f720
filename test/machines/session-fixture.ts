/**
 * A notebook session's chart with ports that only record their calls, and a clock that stands
 * still.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createActor, fromCallback, SimulatedClock } from 'xstate';
import {
  type DriverCommand,
  type NotebookSessionEvent,
  type NotebookSessionNotice,
  type NotebookSessionSnapshot,
  notebookSessionMachine,
  type SessionContext,
  type Work,
  type WorkEnd,
} from '#machines/notebook-session.ts';
import type { Failure } from '#src/base/errors/errors.ts';
import type { EnvironmentId, NotebookId, WorkspaceId } from '#src/base/ids.ts';
import { leafOf, stored } from './chart-table.ts';

export const INPUT = { workspaceId: 'ws_1' as WorkspaceId, notebookId: 'nb_1' as NotebookId };
export const OOM: Failure = { code: 'kernel_out_of_memory', message: 'The kernel ran out of memory.' };
export const STOPPED: Failure = { code: 'server_stopped', message: 'The server was stopped.' };
export const EARLY_MS = 59_999;
export const LATE_MS = 60_000;

export type StartedSession = ReturnType<typeof startSession>;

/** A session at its beginning, or restored by a new server from the given snapshot. */
export function startSession(t: TestContext, from?: NotebookSessionSnapshot) {
  const clock = new SimulatedClock();
  const ended: ({ readonly work: Work } & WorkEnd)[] = [];
  const notices: NotebookSessionNotice[] = [];
  const releases: (string | null)[] = [];
  /** How often the bound conversation was closed. */
  const bound = { closes: 0 };
  const kernel = {
    orders: [] as DriverCommand[],
    starts: 0,
    stops: 0,
    /** Makes the next start, or the next order, throw. */
    breaks: null as 'start' | 'order' | null,
    say: (_: NotebookSessionEvent): void => assert.fail('no kernel was ever started'),
  };
  const machine = notebookSessionMachine.provide({
    actors: {
      kernel: fromCallback<DriverCommand, SessionContext>(({ receive, sendBack }) => {
        if (kernel.breaks === 'start') {
          kernel.breaks = null;
          throw new Error('spawn ENOENT');
        }
        kernel.starts++;
        kernel.say = sendBack;
        receive((order) => {
          if (kernel.breaks === 'order') {
            kernel.breaks = null;
            kernel.stops++; // XState does not stop an actor that throws, so it has to release its resources itself
            throw new Error('write EPIPE');
          }
          kernel.orders.push(order);
        });
        return () => {
          kernel.stops++;
        };
      }),
    },
    actions: {
      endWork: ({ context }, { status, failure }) => {
        if (context.work !== null) ended.push({ work: context.work, status, failure });
      },
      closeBound: () => {
        bound.closes++;
      },
      release: ({ context }) => {
        releases.push(context.environmentId);
      },
    },
  });
  const snapshot = from === undefined ? undefined : stored(machine, from);
  const session =
    snapshot === undefined
      ? createActor(machine, { clock, input: INPUT })
      : createActor(machine, { clock, snapshot, input: INPUT });
  session.on('*', (notice) => notices.push(notice));
  session.subscribe({ error: (error) => assert.fail(error as Error) });
  session.start();
  t.after(() => session.stop());
  const send = (...events: NotebookSessionEvent[]) => {
    for (const event of events) session.send(event);
  };
  const state = () => leafOf(session.getSnapshot().value);
  const context = () => session.getSnapshot().context;
  return { session, kernel, clock, ended, notices, releases, bound, send, state, context };
}

export const open: NotebookSessionEvent = {
  type: 'open',
  environmentId: 'env_1' as EnvironmentId,
  mode: 'edit',
  arguments: [],
  by: { userId: 'ada', readsDatasources: true },
  lifetime: { ttlS: null, idleTimeoutS: null },
  at: '2026-01-01T00:00:00.000Z',
};
export function shareEnvironment(environmentId = 'env_1'): NotebookSessionEvent {
  return { type: 'shareEnvironment', environmentId: environmentId as EnvironmentId };
}
export const close: NotebookSessionEvent = { type: 'close' };
export const wake: NotebookSessionEvent = { type: 'wake' };
export const restored: NotebookSessionEvent = { type: 'restored' };
export const installing: NotebookSessionEvent = { type: 'kernel.installing' };
export const installed: NotebookSessionEvent = { type: 'kernel.installed' };
export const ready: NotebookSessionEvent = { type: 'kernel.ready', phases: { totalMs: 12 } };
export const hibernate: NotebookSessionEvent = { type: 'hibernate', reason: 'idle' };
export const suspend: NotebookSessionEvent = { type: 'suspend', failure: STOPPED };

export function execute(id = 'run_1', edits = false): NotebookSessionEvent {
  return { type: 'execute', work: { kind: 'run', id }, edits };
}
/** Work that may take this many milliseconds. */
export function executeWithin(timeoutMs: number): NotebookSessionEvent {
  return { type: 'execute', work: { kind: 'run', id: 'run_1', timeoutMs }, edits: false };
}
export function cancel(workId = 'run_1'): NotebookSessionEvent {
  return { type: 'cancel', workId };
}
export function done(workId = 'run_1'): NotebookSessionEvent {
  return { type: 'kernel.done', workId, status: 'completed', failure: null };
}
export function exited(uptimeMs = LATE_MS): NotebookSessionEvent {
  return { type: 'kernel.exited', uptimeMs, failure: OOM };
}
