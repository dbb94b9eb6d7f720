import type { Work } from '#machines/notebook-session.ts';
import { newId } from '#src/base/ids.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import type { LiveNotebooks } from '../open/live-notebooks.ts';
import type { WorkPlan } from '../open/work-plan.ts';
import type { NotebookSessionActors } from '../sessions/notebook-session-actors.ts';

/** The options of work without a record, whose caller waits for the result. */
export interface CallOptions {
  readonly kind: 'code' | 'check' | 'element';
  /** The user who asks for the work. */
  readonly by: string;
  readonly edits: boolean;
  /** When this signal aborts, the work is interrupted. The call settles once the work has ended. */
  readonly signal?: AbortSignal;
  /** The time after which the work is interrupted, in milliseconds. Absent: no deadline. */
  readonly timeoutMs?: number;
}

/** A piece of work for a session. */
interface NewWork {
  /** The open notebook of the session. */
  readonly live: LiveNotebook;
  readonly work: Work;
  /** Whether the work changes the notebook. */
  readonly edits: boolean;
  readonly plan: WorkPlan;
}

/** Returns the deadline that a request sets for its work. */
export function deadlineOf({
  timeoutS,
}: {
  readonly timeoutS?: number | undefined;
}): Pick<Work, 'timeoutMs'> {
  return timeoutS === undefined ? {} : { timeoutMs: timeoutS * 1000 };
}

/** Returns the plan of a call. When the work has ended, the plan calls either `resolve` or `reject`. */
export type CallPlan<Result> = (
  id: string,
  resolve: (result: Result) => void,
  reject: (error: Error) => void,
) => WorkPlan;

/** Gives work to notebook sessions. The chart of a session decides whether it takes the work. */
export class SessionWork {
  readonly #actors: NotebookSessionActors;
  readonly #liveNotebooks: LiveNotebooks;

  constructor(actors: NotebookSessionActors, liveNotebooks: LiveNotebooks) {
    this.#actors = actors;
    this.#liveNotebooks = liveNotebooks;
  }

  /** Throws the refusal of the session if it would not take such work now. */
  check(session: ActorId, kind: Work['kind'], edits: boolean): void {
    this.#actors.check(session, { type: 'execute', work: { kind, id: '' }, edits });
  }

  /** Gives the session a piece of work. Throws the refusal of the session; otherwise `plan.ended` is called exactly once. */
  start(session: ActorId, { live, work, edits, plan }: NewWork): void {
    live.work.offer(work, plan, () => this.#actors.ask(session, { type: 'execute', work, edits }));
  }

  /** Gives the session work whose result the caller waits for. Rejects with the refusal, or with the plan's error. */
  async call<Result>(
    session: ActorId,
    { kind, by, edits, signal, timeoutMs }: CallOptions,
    planOf: CallPlan<Result>,
  ): Promise<Result> {
    const id = newId<string>('request');
    const interrupt = () => this.cancel(session, id);
    const work = { kind, id, by, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    try {
      return await new Promise<Result>((resolve, reject) => {
        const live = this.#liveNotebooks.of(session);
        this.start(session, { live, work, edits, plan: planOf(id, resolve, reject) });
        if (signal?.aborted === true) interrupt();
        else signal?.addEventListener('abort', interrupt, { once: true });
      });
    } finally {
      signal?.removeEventListener('abort', interrupt);
    }
  }

  /** Interrupts the work if it is the session's present work. */
  cancel(session: ActorId, workId: string): void {
    this.#actors.tell(session, { type: 'cancel', workId });
  }
}
