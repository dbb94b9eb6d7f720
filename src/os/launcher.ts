/** Secrets of this process that its parent processes keep in their environment. */
import { readFileSync } from 'node:fs';
import type { Secret } from '#src/core/secret.ts';

/**
 * Returns the nearest process above this one that has one of `secrets` in an environment which other programs of the
 * same user can read, as npm has after `npm start`; undefined when there is none or it cannot be known.
 */
export function findExposingLauncher(
  secrets: readonly Secret[],
): { readonly pid: number; readonly name: string } | undefined {
  const values = secrets.map((secret) => `=${secret.reveal()}`);
  for (let pid = process.ppid; pid > 0; ) {
    const environment = read(pid, 'environ')?.split('\0') ?? [];
    const stat = read(pid, 'stat') ?? '';
    const nameEnd = stat.lastIndexOf(')');
    if (environment.some((entry) => values.some((value) => entry.endsWith(value))))
      return { pid, name: stat.slice(stat.indexOf('(') + 1, nameEnd) };
    pid = Number(stat.slice(nameEnd + 2).split(' ')[1] ?? 0);
  }
  return undefined;
}

function read(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return undefined; // it has ended, or is closed to others
  }
}
