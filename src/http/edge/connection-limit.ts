/**
 * The limit on connections keeps clients from taking every file descriptor of the process: kernels, databases and the disk
 * need descriptors, too. A connection beyond the limit is closed before anything of it is read.
 */
import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import { readFileSync } from 'node:fs';

/** The share of the process's open files that clients may take. */
const CLIENT_SHARE = 0.75;

/** Counts the connections of clients of this process. */
export class ConnectionLimit {
  readonly limit: number;
  #open = 0;

  /**
   * A `limit` of 0 means as many as the open-file limit of this process allows. Any other limit is for the whole server, and each
   * of `workers` processes has its share.
   */
  constructor(limit = 0, workers = 1) {
    this.limit = limit === 0 ? affordableConnections() : Math.max(1, Math.floor(limit / workers));
  }

  /** Counts `change` more connections, or fewer when negative. Returns whether all of them are within the limit. */
  count(change: number): boolean {
    this.#open += change;
    return this.#open <= this.limit;
  }
}

/** Counts the connections of a uWebSockets.js server and closes those beyond the limit. */
export function limitConnections(app: TemplatedApp, connections: ConnectionLimit): void {
  const count = (res: HttpResponse, change: number): void => {
    const isWithin = connections.count(change);
    if (change > 0 && !isWithin) res.close();
  };
  app.filter((res, change) => count(res, Number(change)));
}

/** Returns how many connections the open-file limit of this process allows; Infinity where the limit is not known. */
function affordableConnections(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return soft === undefined ? Number.POSITIVE_INFINITY : Math.floor(Number(soft) * CLIENT_SHARE);
  } catch {
    return Number.POSITIVE_INFINITY; // The system has no /proc.
  }
}
