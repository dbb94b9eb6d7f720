/**
 * Keeps clients from taking every descriptor of the process: those are needed for kernels, databases and the disk, too. A
 * connection beyond the limit is closed before anything of it is read.
 */

import type { HttpResponse, TemplatedApp } from 'uWebSockets.js';
import { readFileSync } from 'node:fs';

/** Of the open files that a process may have. */
const SHARE_FOR_CLIENTS = 0.75;

export function limitConnections(app: TemplatedApp, most: number): void {
  let open = 0;
  const count = (res: HttpResponse, change: number): void => {
    open += change;
    if (change > 0 && open > most) res.close();
  };
  app.filter((res, change) => count(res, Number(change)));
}

/** What can be left to clients by the open files that this process may have; Infinity where that is not known. */
export function affordableConnections(): number {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1];
    return soft === undefined ? Number.POSITIVE_INFINITY : Math.floor(Number(soft) * SHARE_FOR_CLIENTS);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
