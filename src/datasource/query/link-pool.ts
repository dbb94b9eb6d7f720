/**
 * Open connections to databases, kept for the next statement. They belong to one revision of a datasource: when the
 * datasource is replaced or deleted, idle connections are closed at once and the others when their statement ends.
 */

import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { DatasourceRecord } from '#storage/records/datasources.ts';
import type { DatabaseLink } from '../connectors/link.ts';
import { DatasourceFailure } from '../failure.ts';

/** Opens a new connection. Rejects with `DatasourceFailure`. */
export type OpenLink = (workspaceId: WorkspaceId, record: DatasourceRecord) => Promise<DatabaseLink>;

/** A connection that is reserved for one statement. */
export interface Lease {
  readonly link: DatabaseLink;
  /**
   * Closes the connection, or returns it to the pool if it is `reusable` and can be reset. A
   * connection whose statement has failed is not reusable. Idempotent.
   */
  release(reusable: boolean): void;
}

interface IdleLink {
  readonly link: DatabaseLink;
  readonly timer: NodeJS.Timeout;
  /** Resolves with whether the link has the same state as at its opening. Never rejects. */
  readonly isReset: Promise<boolean>;
}

interface RevisionPool {
  readonly idle: IdleLink[];
  readonly waiting: (() => void)[];
  leased: number;
  isVoid: boolean;
}

/**
 * Most connections of the server to one datasource at a time, divided among the server's workers. Further
 * statements wait for a connection, up to `WAIT_MS`.
 */
const MAX_CONNECTIONS = 8;
/** Code that sends a statement while it reads the rows of another one needs two connections. */
const MIN_SHARE = 2;
const IDLE_MS = 60_000;
const WAIT_MS = 30_000;

export interface LinkPoolOptions {
  /** How long a statement waits for a connection before it fails with `busy`. */
  readonly waitMs?: number;
  /** How many processes serve; each has its share of the connections. */
  readonly workers?: number;
}

/** Owns every connection to a database. Disposing of it closes the idle ones. */
export class LinkPool implements AsyncDisposable {
  readonly #open: OpenLink;
  readonly #waitMs: number;
  readonly #maxConnections: number;
  readonly #pools = new Map<string, RevisionPool>();
  readonly #lost = new WeakSet<DatabaseLink>();

  constructor(open: OpenLink, { waitMs = WAIT_MS, workers = 1 }: LinkPoolOptions = {}) {
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
    // The wait has a limit, because the caller itself may hold all connections, with results that
    // it does not read.
    while (pool.leased >= this.#maxConnections) await waitForRelease(pool, this.#waitMs, signal);
    pool.leased++;
    for (let kept = pool.idle.pop(); kept !== undefined; kept = pool.idle.pop()) {
      clearTimeout(kept.timer);
      if (await kept.isReset) return this.#lease(key, pool, kept.link);
    }
    try {
      const link = await this.#open(workspaceId, record);
      // A database closes idle connections at any time, for instance when it restarts. When it closes a connection in
      // use, the statement on that connection fails.
      const discarded = link.lost?.then(() => {
        this.#lost.add(link);
        if (pool.idle.some((kept) => kept.link === link)) this.#discard(key, pool, link);
      });
      unawaited(discarded, 'link-pool: the loss of a connection');
      return this.#lease(key, pool, link);
    } catch (error) {
      this.#leave(key, pool);
      throw error;
    }
  }

  /** Closes the connections of every revision of a datasource. */
  drop(workspaceId: WorkspaceId, slug: string): void {
    for (const [key, pool] of this.#pools) {
      if (key.startsWith(keyOf(workspaceId, slug)))
        unawaited(
          Promise.all(this.#empty(key, pool)),
          'link-pool: the end of the connections of a datasource',
        );
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const idle = [...this.#pools].flatMap(([key, pool]) => this.#empty(key, pool));
    await Promise.all(idle);
  }

  #lease(key: string, pool: RevisionPool, link: DatabaseLink): Lease {
    let released = false;
    return {
      link,
      release: (reusable) => {
        if (released) return;
        released = true;
        if (reusable && link.isSingleUse !== true && !pool.isVoid && !this.#lost.has(link))
          this.#keep(key, pool, link);
        else unawaited(closed(link), 'link-pool: the end of a connection');
        this.#leave(key, pool);
      },
    };
  }

  /**
   * Makes a link available to the next statement of any caller. The link is reset now, not
   * when that statement comes: until then it would hold locks, and the statement would wait for the
   * reset.
   */
  #keep(key: string, pool: RevisionPool, link: DatabaseLink): void {
    const discard = () => this.#discard(key, pool, link);
    const timer = setTimeout(discard, IDLE_MS).unref();
    const reset = link.reset?.() ?? Promise.resolve();
    const isReset = reset.then(
      () => true,
      () => {
        discard();
        return false;
      },
    );
    pool.idle.push({ link, timer, isReset });
  }

  /** Takes a link out of the pool and closes it. */
  #discard(key: string, pool: RevisionPool, link: DatabaseLink): void {
    const at = pool.idle.findIndex((kept) => kept.link === link);
    if (at !== -1) for (const { timer } of pool.idle.splice(at, 1)) clearTimeout(timer);
    this.#forget(key, pool);
    unawaited(closed(link), 'link-pool: the end of a connection');
  }

  #leave(key: string, pool: RevisionPool): void {
    pool.leased--;
    pool.waiting.shift()?.();
    this.#forget(key, pool);
  }

  /** Removes a pool that has no connection left, unless a newer pool has taken its place. */
  #forget(key: string, pool: RevisionPool): void {
    const isEmpty = pool.leased === 0 && pool.idle.length === 0;
    if (isEmpty && this.#pools.get(key) === pool) this.#pools.delete(key);
  }

  #empty(key: string, pool: RevisionPool): Promise<void>[] {
    pool.isVoid = true;
    this.#pools.delete(key);
    return pool.idle.splice(0).map(({ link, timer }) => {
      clearTimeout(timer);
      return closed(link);
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

/** Closes a link. A failure does not matter: closing a link destroys its sockets in any case. */
function closed(link: DatabaseLink): Promise<void> {
  return link.close().catch(() => undefined);
}
