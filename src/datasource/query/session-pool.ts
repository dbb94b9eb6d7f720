/**
 * Open connections to databases, kept for the next statement. They belong to one revision of a datasource: when it is
 * replaced or deleted, idle connections are closed at once and the others when their statement ends.
 */
import type { WorkspaceId } from '#src/core/ids.ts';
import type { DatasourceRecord } from '#storage/datasources.ts';
import type { Session } from '../connectors/session.ts';
import { DatasourceFailure } from '../failure.ts';

/** Opens a new connection. Rejects with `DatasourceFailure`. */
export type OpenSession = (workspaceId: WorkspaceId, record: DatasourceRecord) => Promise<Session>;

/** A connection that is reserved for one statement. */
export interface Lease {
  readonly session: Session;
  /** Returns the connection to the pool, or closes it unless `reusable`: its statement failed or changed its state. Idempotent. */
  release(reusable: boolean): void;
}

interface RevisionPool {
  readonly idle: { readonly session: Session; readonly timer: NodeJS.Timeout }[];
  readonly waiting: (() => void)[];
  leased: number;
  isVoid: boolean;
}

/**
 * Most connections of the server to one datasource at a time. Each of several workers has its share. Further statements wait for
 * a connection, up to `WAIT_MS`.
 */
const MAX_CONNECTIONS = 8;
/** Code that sends a statement while it reads the rows of another one needs two connections. */
const MIN_SHARE = 2;
const IDLE_MS = 60_000;
const WAIT_MS = 30_000;

export interface SessionPoolOptions {
  /** How long a statement waits for a connection before it fails with `busy`. */
  readonly waitMs?: number;
  /** How many processes serve; each has its share of the connections. */
  readonly workers?: number;
}

/** Owns every connection to a database. Disposing of it closes the idle ones. */
export class SessionPool implements AsyncDisposable {
  readonly #open: OpenSession;
  readonly #waitMs: number;
  readonly #maxConnections: number;
  readonly #pools = new Map<string, RevisionPool>();

  constructor(open: OpenSession, { waitMs = WAIT_MS, workers = 1 }: SessionPoolOptions = {}) {
    this.#open = open;
    this.#waitMs = waitMs;
    this.#maxConnections = Math.max(MIN_SHARE, Math.floor(MAX_CONNECTIONS / workers));
  }

  /**
   * Reserves a connection. Rejects with `DatasourceFailure` when the database cannot be reached, when all connections
   * stay in use (`busy`), and when the signal aborts during the wait (`cancelled`).
   */
  async acquire(workspaceId: WorkspaceId, record: DatasourceRecord, signal: AbortSignal): Promise<Lease> {
    const key = `${keyOf(workspaceId, record.slug)}${record.id}/${record.revision}`;
    const pool = this.#pools.get(key) ?? { idle: [], waiting: [], leased: 0, isVoid: false };
    this.#pools.set(key, pool);
    // The wait has a limit: the caller itself may hold all connections, with results that it does not read.
    while (pool.leased >= this.#maxConnections) await waitForRelease(pool, this.#waitMs, signal);
    pool.leased++;
    const kept = pool.idle.pop();
    if (kept !== undefined) {
      clearTimeout(kept.timer);
      return this.#lease(key, pool, kept.session);
    }
    try {
      return this.#lease(key, pool, await this.#open(workspaceId, record));
    } catch (error) {
      this.#leave(key, pool);
      throw error;
    }
  }

  /** Closes the connections of every revision of a datasource. */
  drop(workspaceId: WorkspaceId, slug: string): void {
    for (const [key, pool] of this.#pools) {
      if (key.startsWith(keyOf(workspaceId, slug))) void Promise.all(this.#empty(key, pool));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const idle = [...this.#pools].flatMap(([key, pool]) => this.#empty(key, pool));
    await Promise.all(idle);
  }

  #lease(key: string, pool: RevisionPool, session: Session): Lease {
    let released = false;
    return {
      session,
      release: (reusable) => {
        if (released) return;
        released = true;
        if (reusable && !pool.isVoid) this.#keep(pool, session);
        else void closed(session);
        this.#leave(key, pool);
      },
    };
  }

  #keep(pool: RevisionPool, session: Session): void {
    const timer = setTimeout(() => {
      const at = pool.idle.findIndex((kept) => kept.session === session);
      if (at !== -1) pool.idle.splice(at, 1);
      void closed(session);
    }, IDLE_MS).unref();
    pool.idle.push({ session, timer });
  }

  #leave(key: string, pool: RevisionPool): void {
    pool.leased--;
    pool.waiting.shift()?.();
    if (pool.leased === 0 && pool.idle.length === 0) this.#pools.delete(key);
  }

  #empty(key: string, pool: RevisionPool): Promise<void>[] {
    pool.isVoid = true;
    this.#pools.delete(key);
    return pool.idle.splice(0).map(({ session, timer }) => {
      clearTimeout(timer);
      return closed(session);
    });
  }
}

/** Resolves when a connection was released. Rejects with `busy` after `waitMs`, with `cancelled` on abort. */
function waitForRelease(pool: RevisionPool, waitMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (category: 'busy' | 'cancelled') => () => {
      const at = pool.waiting.indexOf(go);
      if (at !== -1) pool.waiting.splice(at, 1);
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
    pool.waiting.push(go);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}

function keyOf(workspaceId: string, slug: string): string {
  return `${workspaceId}/${slug}/`;
}

/** Closes a session. A failure does not matter: closing a session destroys its sockets in any case. */
function closed(session: Session): Promise<void> {
  return session.close().catch(() => undefined);
}
