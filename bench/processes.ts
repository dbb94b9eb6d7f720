/** What Linux says about processes: who belongs to whom, their memory and their CPU time. */
import { readdirSync, readFileSync } from 'node:fs';

/** A process and all that it started, as far as they are there; itself first. */
export function processTree(pid: number): number[] {
  const found = [pid];
  for (const one of found) found.push(...childrenOf(one));
  return found;
}

/** Bytes of one process, shared pages counted whole. */
export function residentBytes(pid: number): number {
  return fieldKiB(pid, 'status', 'VmRSS') * 1024;
}

/** Bytes of processes, a page that several have counted in parts. Those that have ended have none. */
export function proportionalBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + fieldKiB(pid, 'smaps_rollup', 'Pss') * 1024, 0);
}

/** Milliseconds that the threads of these processes have run. */
export function cpuMs(pids: readonly number[]): number {
  let sum = 0;
  for (const pid of pids) {
    for (const thread of list(`/proc/${pid}/task`)) {
      sum += Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0] ?? 0) / 1e6;
    }
  }
  return sum;
}

/** Milliseconds that the main thread of one process has run. */
export function mainThreadMs(pid: number): number {
  return Number(read(`/proc/${pid}/task/${pid}/schedstat`).split(' ')[0]) / 1e6;
}

function childrenOf(pid: number): number[] {
  return list(`/proc/${pid}/task`).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  );
}

function fieldKiB(pid: number, file: string, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(read(`/proc/${pid}/${file}`));
  return match === null ? 0 : Number(match[1]);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // it has ended
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
