/** Linux's figures of the processes visible to this one: one small read for each, in slices that block no request. */
import { closeSync, openSync, readdirSync, readSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';

export interface ProcessFact {
  readonly parent: number;
  /** Processor time of the process and of its children that have ended. */
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
  /**
   * Together with the process number, distinguishes this process from a later one with the same
   * number.
   */
  readonly startedAtTicks: number;
}

export interface ProcessTable {
  readonly processes: ReadonlyMap<number, ProcessFact>;
  readonly children: ReadonlyMap<number, readonly number[]>;
  /** How long the event loop was blocked, in total. */
  readonly workedMs: number;
}

/** How many processes are read in one turn of the event loop. Each takes some 25 µs. */
const MAX_READ = 10;
/** Linux reports processor time in hundredths of a second, for any frequency of its own clock. */
const TICKS_PER_S = 100;
const PAGE_BYTES = 4096;
const MAX_STAT_BYTES = 1024;

const buffer = Buffer.allocUnsafe(MAX_STAT_BYTES);

/** Reads all processes except those with these pids. */
export async function readProcesses(skipped: ReadonlySet<number>): Promise<ProcessTable> {
  const processes = new Map<number, ProcessFact>();
  const children = new Map<number, number[]>();
  let sliceAtMs = performance.now();
  let workedMs = 0;
  let count = 0;
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const fact = Number.isInteger(pid) && !skipped.has(pid) ? factOf(pid) : undefined;
    if (fact === undefined) continue;
    processes.set(pid, fact);
    const siblings = children.get(fact.parent);
    if (siblings === undefined) children.set(fact.parent, [pid]);
    else siblings.push(pid);
    if (++count % MAX_READ !== 0) continue;
    workedMs += performance.now() - sliceAtMs;
    await nextTurn();
    sliceAtMs = performance.now();
  }
  return { processes, children, workedMs: workedMs + performance.now() - sliceAtMs };
}

/** Returns undefined for a process that has ended. */
function factOf(pid: number): ProcessFact | undefined {
  const stat = beginningOf(`/proc/${pid}/stat`);
  if (stat === undefined) return undefined;
  // The name before these fields may contain spaces and brackets. proc(5) counts from 1: state is
  // 3, the parent 4, utime to cstime 14 to 17, the start 22, and resident pages 24.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 24 - 2);
  const at = (number: number) => Number(fields[number - 3]);
  return {
    parent: at(4),
    cpuSeconds: (at(14) + at(15) + at(16) + at(17)) / TICKS_PER_S,
    startedAtTicks: at(22),
    memoryBytes: at(24) * PAGE_BYTES,
  };
}

/** Returns the beginning of a file; undefined when the file does not exist any more. */
export function beginningOf(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return undefined;
  }
  try {
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, MAX_STAT_BYTES, 0));
  } catch {
    return undefined; // the process has ended in the meantime
  } finally {
    closeSync(fd);
  }
}
