/** Ends this process with its parent, even while a statement keeps the main thread from hearing of anything. */
import { Worker } from 'node:worker_threads';

const CHECK = `
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
  }, 500);
`;

export function watchParent(): void {
  new Worker(CHECK, { eval: true }).unref();
}
