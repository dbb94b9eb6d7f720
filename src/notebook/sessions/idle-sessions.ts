/**
 * Puts sessions to sleep that had no command, no reader, no subscriber, no page and no work for a while. Observers do not count.
 * The kernel of such a session ends, and the session leaves memory until its next use. Owns a timer, which `dispose` ends.
 */
import type { LiveNotebook } from '../open/live-notebook.ts';
import type { NotebookContext } from './notebook-context.ts';
import type { NotebookSessionActors } from './notebook-session-actors.ts';

const MIN_SWEEP_MS = 20;
const MAX_SWEEP_MS = 30_000;

export class IdleSessions implements Disposable {
  readonly #context: NotebookContext;
  readonly #actors: NotebookSessionActors;
  readonly #timer: NodeJS.Timeout | undefined;

  /** With an idle timeout of 0, no session is put to sleep. */
  constructor(context: NotebookContext, actors: NotebookSessionActors) {
    this.#context = context;
    this.#actors = actors;
    const timeoutMs = context.config.idleTimeoutS * 1000;
    if (timeoutMs === 0) return;
    const sweepMs = Math.min(Math.max(timeoutMs / 4, MIN_SWEEP_MS), MAX_SWEEP_MS);
    this.#timer = setInterval(() => this.#sweep(), sweepMs).unref();
  }

  #sweep(): void {
    const dueMs = performance.now() - this.#context.config.idleTimeoutS * 1000;
    for (const live of this.#context.liveNotebooks.all()) {
      if (live.stream.userCount > 0 || live.isShown) live.touch();
      else if (live.usedAtMs <= dueMs) this.#putToSleep(live);
    }
  }

  #putToSleep(live: LiveNotebook): void {
    const { liveNotebooks, ends } = this.#context;
    const actors = this.#actors;
    const { workspaceId, sessionId } = live;
    const session = { workspaceId, id: sessionId };
    // A session that is not in memory has no kernel, and may be about to move to another worker, so the sweep does not restore it.
    if (actors.peek(session)?.live === true) actors.tell(session, { type: 'hibernate', reason: 'idle' });
    // A session that starts or works does not hibernate and stays in memory.
    const peek = actors.peek(session);
    if (peek?.live === true && peek.snapshot.hasTag('resident')) return;
    ends.leaving(live);
    liveNotebooks.forget(session);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
