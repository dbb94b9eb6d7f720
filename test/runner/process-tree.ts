/** Facts from /proc about processes that run tests. */
import { readdirSync, readFileSync } from 'node:fs';

/** Returns a line for each descendant of a process, indented below its parent. */
export function processesBelow(pid: number, indent = '  '): string[] {
  return childrenOf(pid).flatMap((child) => [
    `${indent}${child}: ${commandOf(child)}`,
    ...processesBelow(child, `${indent}  `),
  ]);
}

/** Returns how much memory a process has; 0 when it has ended. */
export function residentBytes(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(textOf(`/proc/${pid}/status`))?.[1];
  return Number(kib ?? 0) * 1024;
}

/** Returns the seconds that the processors of this machine have worked since its start, for whatever process. */
export function processorSeconds(): number {
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, softInterrupts = 0] = (
    textOf('/proc/stat').split('\n', 1)[0] ?? ''
  )
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + interrupts + softInterrupts) / 100; // USER_HZ is 100 on all architectures that Node.js supports
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      textOf(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return []; // it has ended
  }
}

function commandOf(pid: number): string {
  const state = /^State:\s+(.*)$/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 'has ended';
  return `${textOf(`/proc/${pid}/cmdline`).split('\0').join(' ').trim().slice(0, 200)} ${state}`;
}

/** Returns the text of a file of /proc; empty when the process has ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
