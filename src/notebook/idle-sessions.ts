/**
 * Puts sessions to sleep that nobody has used for a while: no command, no look at it, no subscriber, no work. Their
 * kernels end and what was in memory of them goes; their next use restores them. Ends with `dispose`.
 */
import type { LiveNotebook } from './live-notebook.ts';
import type { LiveNotebooks } from './live-notebooks.ts';
import type { NotebookSessionActors } from './session-actor.ts';

export interface IdleSessionsOptions {
  readonly actors: NotebookSessionActors;
  readonly liveNotebooks: LiveNotebooks;
  /** 0: nobody is ever put to sleep. */
  readonly timeoutMs: number;
}

const SHORTEST_SWEEP_MS = 20;
const LONGEST_SWEEP_MS = 30_000;

export class IdleSessions implements Disposable {
  readonly #options: IdleSessionsOptions;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(options: IdleSessionsOptions) {
    this.#options = options;
    const { timeoutMs } = options;
    if (timeoutMs === 0) return;
    const sweepMs = Math.min(Math.max(timeoutMs / 4, SHORTEST_SWEEP_MS), LONGEST_SWEEP_MS);
    this.#timer = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  #sweep(): void {
    const dueMs = performance.now() - this.#options.timeoutMs;
    for (const live of this.#options.liveNotebooks.all()) {
      if (live.stream.subscriberCount > 0) live.touch();
      else if (live.usedAtMs <= dueMs) this.#putToSleep(live);
    }
  }

  #putToSleep({ workspaceId, sessionId }: LiveNotebook): void {
    const { actors, liveNotebooks } = this.#options;
    const session = { workspaceId, id: sessionId };
    actors.tell(session, { type: 'hibernate' });
    // One that starts or works takes no sleep, and keeps what it has.
    if (actors.peek(session)?.snapshot.hasTag('resident') !== true) liveNotebooks.forget(session);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
