/**
 * Keeps clients from taking every descriptor of the process: those are needed for kernels, databases and the disk, too. A
 * connection beyond the limit is closed before anything of it is read.
 */
import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import { readFileSync } from 'node:fs';

/** Of the open files that a process may have. */
const SHARE_FOR_CLIENTS = 0.75;

/** Counts the descriptors that connections of clients take, on every port of the server together. */
export class ConnectionLimit {
  readonly limit: number;
  #open = 0;

  /** `limit`: 0 takes what the open files of this process allow. */
  constructor(limit = 0) {
    this.limit = limit === 0 ? affordableConnections() : limit;
  }

  /** Counts `descriptors` more, or fewer when negative. Returns whether all of them are within the limit. */
  count(descriptors: number): boolean {
    this.#open += descriptors;
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

/** What can be left to clients by the open files that this process may have; Infinity where that is not known. */
function affordableConnections(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return soft === undefined ? Number.POSITIVE_INFINITY : Math.floor(Number(soft) * SHARE_FOR_CLIENTS);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
