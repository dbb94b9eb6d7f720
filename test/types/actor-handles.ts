/**
 * Mistakes that must not compile. The ordinary build compiles this file and nothing runs it: an expected error that does
 * not occur is an error of the build.
 */
import type { notebookSessionMachine } from '#machines/notebook-session.ts';
import type { Refusals } from '#src/base/errors/refusals.ts';
import type { NotebookId, SessionId } from '#src/base/ids.ts';
import type { ActorKind } from '#src/runtime/actors/actor-kind.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import type { RunRepository } from '#src/runtime/runs/run-repository.ts';
import type { EnvironmentActors } from '#src/runtime/sessions/environments.ts';

type NotebookSessionActors = ActorKind<typeof notebookSessionMachine>;

export function commands(
  environments: EnvironmentActors,
  sessions: NotebookSessionActors,
  id: ActorId,
): void {
  // @ts-expect-error the event is misspelled
  environments.tell(id, { type: 'detachAgnet', sessionId: '' as SessionId });
  // @ts-expect-error the chart of another kind has this event
  environments.ask(id, { type: 'hibernate', reason: 'idle' });
  // @ts-expect-error `sessionId` is missing
  environments.check(id, { type: 'attachNotebook' });
  // @ts-expect-error a notebook's id is not a session's
  environments.check(id, { type: 'attachNotebook', sessionId: '' as NotebookId });
  // @ts-expect-error `edits` is missing
  sessions.ask(id, { type: 'execute', work: { kind: 'run', id: '' } });
  // @ts-expect-error there is no such kind of work
  sessions.checkStored(id, { type: 'execute', edits: false, work: { kind: 'walk', id: '' } });
  // @ts-expect-error the actor needs to know its notebook
  sessions.spawn(id, { workspaceId: id.workspaceId });
}

export function answers(sessions: NotebookSessionActors, runs: RunRepository, id: ActorId): unknown[] {
  return [
    // @ts-expect-error there may be no such actor
    sessions.peek(id).snapshot,
    // @ts-expect-error the context has no such member
    sessions.peek(id)?.snapshot.context.environment,
    // @ts-expect-error the chart has no such state
    sessions.peek(id)?.snapshot.matches({ live: 'bussy' }),
    // @ts-expect-error the chart has no such tag
    runs.actors.ask(id, { type: 'cancel' }).hasTag('residnet'),
  ];
}

export function notices(sessions: NotebookSessionActors, runs: RunRepository, id: ActorId): void {
  runs.actors.on((_, notice, committed) => {
    notice.status satisfies 'running' | 'completed' | 'failed' | 'cancelled';
    // @ts-expect-error the notice has no such member
    return committed.then(() => notice.state);
  });
  // @ts-expect-error a listener of runs hears of no session
  runs.actors.on((_, notice: { type: 'session.closed'; reason: string }) => notice.reason);
  sessions.watch(id, (notice) => {
    // @ts-expect-error only `session.status` has a status
    return notice.status;
  });
  sessions.watch(id, (notice) => {
    // @ts-expect-error there is no such notice
    if (notice.type === 'session.opened') return notice;
    return undefined;
  });
}

export function kinds(runtime: ActorRuntime): void {
  // @ts-expect-error actors are spoken to through the handle of their kind
  runtime.ask({ kind: 'run', id: '' }, { type: 'cancel' });
}

export const REFUSALS: Refusals<'open' | 'close'>[] = [
  // @ts-expect-error no such event
  { refuse: { opne: 'session_closed' } },
  // @ts-expect-error no such code
  { refuse: { open: 'session_clsoed' } },
];
