import { execFileSync } from 'node:child_process';

/** Makes a named pipe, which Node.js has no call for. */
export function makePipe(path: string): void {
  execFileSync('sh', ['-c', 'mkfifo "$0"', path]);
}
