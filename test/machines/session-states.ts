/** The states of a notebook session: the way into each, all events, and invariants of all states. */
import assert from 'node:assert/strict';
import type { NotebookSessionEvent } from '#machines/notebook-session.ts';
import {
  cancel,
  close,
  done,
  EARLY_MS,
  execute,
  exited,
  hibernate,
  installed,
  installing,
  open,
  ready,
  restored,
  type StartedSession,
  shareEnvironment,
  suspend,
  wake,
} from './session-fixture.ts';

export type State =
  | 'closed'
  | 'live.starting.forking'
  | 'live.starting.installing'
  | 'live.restoring.forking'
  | 'live.restoring.installing'
  | 'live.ready'
  | 'live.busy.running'
  | 'live.busy.cancelling'
  | 'live.busy.killing'
  | 'live.closing'
  | 'dormant'
  | 'failed.resting'
  | 'failed.retryable';

export const CLOSED = { code: 'session_closed', message: 'The session was closed while this was running.' };
export const TIMED_OUT = {
  code: 'kernel_start_timeout',
  message: 'The kernel did not become ready in time.',
};
export const BROKEN = { code: 'kernel_start_failed', message: 'The kernel could not be started or driven.' };
export const KILLED = {
  code: 'kernel_killed',
  message:
    'An interrupt did not stop this, so the kernel was killed: the variables of the notebook are lost.',
};
export const STUCK = { code: 'kernel_stuck', message: 'The kernel did not end when it was killed.' };

/** The way into each state from the beginning. */
export const WAY: Record<State, (s: StartedSession) => void> = {
  closed: () => undefined,
  'live.starting.forking': (s) => s.send(open),
  'live.starting.installing': (s) => s.send(open, installing),
  'live.restoring.forking': (s) => s.send(open, ready, exited()),
  'live.restoring.installing': (s) => s.send(open, ready, exited(), installing),
  'live.ready': (s) => s.send(open, ready),
  'live.busy.running': (s) => s.send(open, ready, execute()),
  'live.busy.cancelling': (s) => s.send(open, ready, execute(), cancel()),
  'live.busy.killing': (s) => {
    s.send(open, ready, execute(), cancel());
    s.clock.increment(3_000);
  },
  'live.closing': (s) => s.send(open, ready, close),
  dormant: (s) => s.send(open, ready, suspend),
  'failed.resting': (s) => s.send(open, exited(EARLY_MS), exited(EARLY_MS), exited(EARLY_MS)),
  'failed.retryable': (s) => {
    s.send(open, exited(EARLY_MS), exited(EARLY_MS), exited(EARLY_MS));
    s.clock.increment(5_000);
  },
};
export const STATES = Object.keys(WAY) as State[];

export const EVENTS: Record<NotebookSessionEvent['type'], NotebookSessionEvent> = {
  shareEnvironment: shareEnvironment(),
  bindAgent: { type: 'bindAgent' },
  changeSaved: { type: 'changeSaved' },
  interrupt: { type: 'interrupt' },
  open,
  execute: execute('run_2'),
  cancel: cancel(),
  close,
  wake,
  suspend,
  hibernate,
  restored,
  'kernel.installing': installing,
  'kernel.installed': installed,
  'kernel.ready': ready,
  'kernel.done': done(),
  'kernel.exited': exited(),
};

/** S1 to S3 of the chart's header. `taken` are the ids of the work that may have been accepted. */
export function assertInvariants(s: StartedSession, taken: readonly string[]): void {
  const state = s.state();
  const { work } = s.context();
  assert.equal(s.kernel.starts - s.kernel.stops, state.startsWith('live.') ? 1 : 0, `S1 in ${state}`);
  assert.equal(work !== null, state.startsWith('live.busy.'), `S2 in ${state}`);
  const endedIds = s.ended.map(({ work: { id } }) => id);
  assert.equal(new Set(endedIds).size, endedIds.length, `S3 in ${state}: ended once`);
  const accounted = work === null ? endedIds : [...endedIds, work.id];
  assert.deepEqual(
    accounted.filter((id) => !taken.includes(id)),
    [],
    `S3 in ${state}: nothing else was ended`,
  );
  const begun = s.notices.filter((notice) => notice.type === 'session.status' && notice.status === 'busy');
  assert.equal(accounted.length, begun.length, `S3 in ${state}: what was accepted is ended or still there`);
}
