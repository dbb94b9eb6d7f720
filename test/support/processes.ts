/** Facts about processes from /proc, for tests to wait for. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as later } from 'node:timers/promises';
import { LANE } from '#test/runner/lane-state.ts';

/** A process. */
export interface ProcessFact {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  /** Start time in ticks, which distinguishes it from a later process with the same pid. */
  readonly startedAt: string;
}

/** The reason to skip a test that reads the descriptors of a process that protects itself; false for root, who can. */
export const UNSEEN =
  process.getuid?.() === 0 ? false : 'only root can look into processes that protect themselves';

/** Returns the facts of /proc about a process; undefined when it has ended. */
export function processFact(pid: number): ProcessFact | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const end = text.lastIndexOf(')');
    const [state, parent, ...rest] = text.slice(end + 2).split(' ');
    // A zombie has ended; only its parent has not collected it yet.
    if (state === 'Z' || state === 'X') return undefined;
    const name = text.slice(text.indexOf('(') + 1, end);
    return { pid, parent: Number(parent), name, startedAt: rest[17] ?? '' };
  } catch {
    return undefined;
  }
}

/** Returns all descendants of a process, the oldest first. Pids do not tell: the system begins with small ones again. */
export function descendants(root: number): ProcessFact[] {
  const all = readdirSync('/proc').flatMap((name) => {
    const fact = /^\d+$/.test(name) ? processFact(Number(name)) : undefined;
    return fact === undefined ? [] : [fact];
  });
  const found: ProcessFact[] = [];
  const open = [root];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    const children = all.filter(({ parent }) => parent === pid);
    found.push(...children);
    open.push(...children.map((child) => child.pid));
  }
  return found.sort((a, b) => Number(a.startedAt) - Number(b.startedAt) || a.pid - b.pid);
}

/**
 * Returns the process with `pid` in its own pid namespace, as a cell sees it. `namespace` is the text that the process
 * reads from the link /proc/self/ns/pid.
 */
export function processSeenAs(pid: number, namespace: string): ProcessFact | undefined {
  const outside = readdirSync('/proc').find((name) => {
    try {
      if (!/^\d+$/.test(name) || readlinkSync(`/proc/${name}/ns/pid`) !== namespace) return false;
      const seenAs = /^NSpid:.*?(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, 'latin1'))?.[1];
      return Number(seenAs) === pid;
    } catch {
      return false; // it has ended, or may not be read
    }
  });
  return outside === undefined ? undefined : processFact(Number(outside));
}

function isAlive({ pid, startedAt }: ProcessFact): boolean {
  return processFact(pid)?.startedAt === startedAt;
}

const BOUND_MS = 120_000;

/** Repeats `fact` until it returns something other than `undefined` or false, and returns that. Rejects after `withinMs`. */
export async function eventually<T>(
  what: string,
  fact: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 60_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await fact();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await later(10);
  }
}

/**
 * Resolves as `wait` does. Rejects after two minutes with `state`, long before the runner would end
 * the file and report only its name.
 */
export async function bounded<T>(what: string, wait: Promise<T>, state: () => string): Promise<T> {
  const limit = new AbortController();
  const late = later(BOUND_MS, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`not within ${BOUND_MS} ms: ${what}\n${state()}`);
  });
  late.catch(() => {}); // the wait was shorter
  try {
    return await Promise.race([wait, late]);
  } finally {
    limit.abort();
  }
}

/** Resolves when all of these processes have ended. Rejects after `withinMs`. */
export async function gone(processes: readonly ProcessFact[], withinMs = 60_000): Promise<void> {
  const left = () => processes.filter(isAlive);
  await eventually('every process has ended', () => left().length === 0, withinMs).catch(() => {
    throw new Error(`still there: ${JSON.stringify(left())}`);
  });
}

/**
 * Returns the kernel host of a server: its guardian, the zygote that forks the kernels, and its next generation if it is there. Of
 * several hosts in one process it is the newest.
 */
export function kernelHostOf(serverPid: number): { guardian: number; zygote: number; preload?: number } {
  const all = descendants(serverPid);
  // The server has other children, but these have no children of their own. A lane has several hosts.
  const ofLane = serverPid === process.pid ? LANE?.guardian : undefined;
  const isGuardian = ({ pid, parent }: ProcessFact) => parent === serverPid && (ofLane ?? pid) === pid;
  const guardian = all.findLast((one) => isGuardian(one) && all.some(({ parent }) => parent === one.pid));
  const zygote = all.find(({ parent }) => parent === guardian?.pid); // it adopts others later
  if (guardian === undefined || zygote === undefined) throw new Error('the server has no kernel host');
  const preload = all.find(({ name, parent }) => parent === zygote.pid && name === 'troupe-preload');
  return { guardian: guardian.pid, zygote: zygote.pid, ...(preload && { preload: preload.pid }) };
}

/** A worker, with the number that its primary has given to it. */
export interface WorkerFact extends ProcessFact {
  readonly number: number;
}

/** Returns the workers of a server, in the order in which they were started; none when it is one process. */
export function workersOf(serverPid: number): WorkerFact[] {
  const children = descendants(serverPid).filter(({ parent }) => parent === serverPid);
  const workers = children.flatMap((fact) => {
    const number = workerNumber(fact.pid);
    return number === undefined ? [] : [{ ...fact, number }];
  });
  return workers.sort((a, b) => a.number - b.number);
}

function workerNumber(pid: number): number | undefined {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0');
    const at = words.indexOf('--worker');
    return at < 0 ? undefined : Number(words[at + 1]);
  } catch {
    return undefined; // it has ended
  }
}

/**
 * Returns the children of both generations of the zygote that are kernels, or the init process of a
 * kernel. Kernels have their name once they are confined.
 */
export function kernelsOf(serverPid: number): ProcessFact[] {
  const all = descendants(serverPid);
  const { zygote, preload } = kernelHostOf(serverPid);
  const isKernel = ({ name }: ProcessFact) => name === 'troupe-kernel';
  return all.filter(
    (one) =>
      [zygote, preload].includes(one.parent) &&
      one.pid !== preload &&
      (isKernel(one) || all.some((other) => other.parent === one.pid && isKernel(other))),
  );
}

/** Does `work` while the kernel host of a server is stopped, so that no kernel starts. */
export async function withoutKernels<T>(serverPid: number, work: () => Promise<T>): Promise<T> {
  const { zygote } = kernelHostOf(serverPid);
  process.kill(zygote, 'SIGSTOP');
  try {
    return await work();
  } finally {
    // A server that stops meanwhile kills the host, which does not end by itself.
    if (processFact(zygote) !== undefined) process.kill(zygote, 'SIGCONT');
  }
}
