/**
 * Open connections to databases, kept for the next statement. They belong to one revision of one datasource: when that is
 * replaced or deleted, the idle ones are closed at once and the others when their statement ends.
 */
import type { WorkspaceId } from '#src/core/ids.ts';
import type { DatasourceRecord } from '#storage/datasources.ts';
import type { Session } from '../connectors/connector.ts';
import { DatasourceFailure } from '../failure.ts';

export type OpenSession = (workspaceId: WorkspaceId, record: DatasourceRecord) => Promise<Session>;

/** A session for one statement. */
export interface Lease {
  readonly session: Session;
  /** Gives it back; one whose statement did not end well is not `reusable`. Idempotent. */
  release(reusable: boolean): void;
}

interface Shelf {
  readonly idle: { readonly session: Session; readonly timer: NodeJS.Timeout }[];
  readonly waiting: (() => void)[];
  leased: number;
  isVoid: boolean;
}

/** Connections to one datasource at once; further statements wait for one, for a while. */
const MOST = 8;
const IDLE_MS = 60_000;
const WAIT_MS = 30_000;

export class SessionPool implements AsyncDisposable {
  readonly #open: OpenSession;
  readonly #waitMs: number;
  readonly #shelves = new Map<string, Shelf>();

  /** `waitMs`: how long a statement waits for a connection. */
  constructor(open: OpenSession, waitMs: number = WAIT_MS) {
    this.#open = open;
    this.#waitMs = waitMs;
  }

  /**
   * Rejects with `DatasourceFailure`: when the database cannot be reached, when all connections stay in use (`busy`),
   * and when the signal aborts while it waits (`cancelled`).
   */
  async acquire(workspaceId: WorkspaceId, record: DatasourceRecord, signal: AbortSignal): Promise<Lease> {
    const key = `${keyOf(workspaceId, record.slug)}${record.id}/${record.revision}`;
    const shelf = this.#shelves.get(key) ?? { idle: [], waiting: [], leased: 0, isVoid: false };
    this.#shelves.set(key, shelf);
    // Whoever holds them all may be the one who waits, with results that nobody reads on.
    while (shelf.leased >= MOST) await turnOf(shelf, this.#waitMs, signal);
    shelf.leased++;
    const kept = shelf.idle.pop();
    if (kept !== undefined) {
      clearTimeout(kept.timer);
      return this.#lease(key, shelf, kept.session);
    }
    try {
      return this.#lease(key, shelf, await this.#open(workspaceId, record));
    } catch (error) {
      this.#leave(key, shelf);
      throw error;
    }
  }

  /** The connections of every revision of a datasource are void. */
  drop(workspaceId: WorkspaceId, slug: string): void {
    for (const [key, shelf] of this.#shelves) {
      if (key.startsWith(keyOf(workspaceId, slug))) void Promise.all(this.#empty(key, shelf));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const idle = [...this.#shelves].flatMap(([key, shelf]) => this.#empty(key, shelf));
    await Promise.all(idle);
  }

  #lease(key: string, shelf: Shelf, session: Session): Lease {
    let released = false;
    return {
      session,
      release: (reusable) => {
        if (released) return;
        released = true;
        if (reusable && !shelf.isVoid) this.#keep(shelf, session);
        else void closed(session);
        this.#leave(key, shelf);
      },
    };
  }

  #keep(shelf: Shelf, session: Session): void {
    const timer = setTimeout(() => {
      const at = shelf.idle.findIndex((kept) => kept.session === session);
      if (at !== -1) shelf.idle.splice(at, 1);
      void closed(session);
    }, IDLE_MS).unref();
    shelf.idle.push({ session, timer });
  }

  #leave(key: string, shelf: Shelf): void {
    shelf.leased--;
    shelf.waiting.shift()?.();
    if (shelf.leased === 0 && shelf.idle.length === 0) this.#shelves.delete(key);
  }

  #empty(key: string, shelf: Shelf): Promise<void>[] {
    shelf.isVoid = true;
    this.#shelves.delete(key);
    return shelf.idle.splice(0).map(({ session, timer }) => {
      clearTimeout(timer);
      return closed(session);
    });
  }
}

/** Resolves when a connection was given back. */
function turnOf(shelf: Shelf, waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (category: 'busy' | 'cancelled') => () => {
      const at = shelf.waiting.indexOf(go);
      if (at !== -1) shelf.waiting.splice(at, 1);
      end();
      reject(new DatasourceFailure(category));
    };
    const timer = setTimeout(leave('busy'), waitMs);
    const abort = leave('cancelled');
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    };
    const go = () => {
      end();
      resolve();
    };
    shelf.waiting.push(go);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

function keyOf(workspaceId: string, slug: string): string {
  return `${workspaceId}/${slug}/`;
}

/** A connection that does not close in good order is gone all the same: its sockets end with its session. */
function closed(session: Session): Promise<void> {
  return session.close().catch(() => undefined);
}
