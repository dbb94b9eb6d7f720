/** Reads about processes from /proc: their children, memory and processor time. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Returns a process and all its descendants that still exist; the process itself is first. */
export function processTree(pid: number): number[] {
  const found = [pid];
  for (const one of found) found.push(...childrenOf(one));
  return found;
}

/** Returns the processes of a server that answer requests: its workers by their number, or the one process that it is. */
export function servingProcesses(pid: number): readonly number[] {
  const workers = childrenOf(pid).flatMap((child) => {
    const words = read(`/proc/${child}/cmdline`).split('\0');
    const at = words.indexOf('--worker');
    return at < 0 ? [] : [{ child, number: Number(words[at + 1]) }];
  });
  if (workers.length === 0) return [pid];
  return workers.sort((a, b) => a.number - b.number).map(({ child }) => child);
}

/** Returns the name of a process; empty when it has ended. */
export function nameOf(pid: number): string {
  return read(`/proc/${pid}/comm`).trim();
}

/** Returns the resident bytes of a process, in which shared pages count in full. */
export function residentBytes(pid: number): number {
  return fieldKiB(pid, 'status', 'VmRSS') * 1024;
}

/** Returns the resident bytes of a process that do not belong to a file. */
export function anonymousBytes(pid: number): number {
  return fieldKiB(pid, 'status', 'RssAnon') * 1024;
}

/** Returns the bytes of processes (Pss), in which each shared page counts in parts. Ended processes count as 0. */
export function proportionalBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + fieldKiB(pid, 'smaps_rollup', 'Pss') * 1024, 0);
}

/** Returns the processor time of all threads of these processes, in milliseconds. */
export function cpuMs(pids: readonly number[]): number {
  let sum = 0;
  for (const pid of pids) {
    for (const thread of list(`/proc/${pid}/task`)) {
      sum += Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0] ?? 0) / 1e6;
    }
  }
  return sum;
}

/** Returns the processor time of the main thread of a process, in milliseconds. */
export function mainThreadMs(pid: number): number {
  return Number(read(`/proc/${pid}/task/${pid}/schedstat`).split(' ')[0]) / 1e6;
}

/**
 * Returns how often the threads of a process were switched, both when they waited and when they
 * were interrupted.
 */
export function contextSwitches(pid: number): number {
  let sum = 0;
  for (const thread of list(`/proc/${pid}/task`)) {
    const status = read(`/proc/${pid}/task/${thread}/status`);
    for (const [, count] of status.matchAll(/ctxt_switches:\s+(\d+)/g)) sum += Number(count);
  }
  return sum;
}

/** After this time a connection counts as not accepted, and another one is opened. */
export const ACCEPTED_WITHIN_MS = 50;

/** Returns the clients' ports of the connections that a process has accepted at a port of 127.0.0.1. */
export function acceptedBy(pid: number, port: number): ReadonlySet<number> {
  const inodes = new Set(list(`/proc/${pid}/fd`).map((fd) => /^socket:\[(\d+)\]$/.exec(link(pid, fd))?.[1]));
  const accepted = new Set<number>();
  for (const line of read('/proc/net/tcp').split('\n').slice(1)) {
    const [, local = '', remote = '', , , , , , , inode] = line.trim().split(/\s+/);
    if (portOf(local) === port && inodes.has(inode)) accepted.add(portOf(remote));
  }
  return accepted;
}

/** Returns the process among these that used the most processor time while `act` ran. */
export async function busiest(pids: readonly number[], act: () => Promise<void>): Promise<number> {
  const before = pids.map((pid) => cpuMs([pid]));
  await act();
  const used = pids.map((pid, i) => cpuMs([pid]) - before[i]!);
  return pids[used.indexOf(Math.max(...used))]!;
}

/** The port of an address such as `0100007F:1F90`. */
function portOf(address: string): number {
  return Number.parseInt(address.split(':')[1] ?? '', 16);
}

function link(pid: number, fd: string): string {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return ''; // the file was closed in the meantime
  }
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
    return ''; // the process has ended
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
