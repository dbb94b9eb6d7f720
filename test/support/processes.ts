/** What /proc says of processes: facts that tests wait for. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as later } from 'node:timers/promises';

export interface ProcessFact {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  /** When it began, in ticks: tells it from a later process with its pid. */
  readonly startedAt: string;
}

function processFact(pid: number): ProcessFact | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const end = text.lastIndexOf(')');
    const [state, parent, ...rest] = text.slice(end + 2).split(' ');
    // A zombie has ended: only its parent has not asked yet.
    if (state === 'Z' || state === 'X') return undefined;
    const name = text.slice(text.indexOf('(') + 1, end);
    return { pid, parent: Number(parent), name, startedAt: rest[17] ?? '' };
  } catch {
    return undefined;
  }
}

/** Every process below this one, however deep. */
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
  return found;
}

/**
 * The process that calls itself `pid` in its own pid namespace, which is what a cell sees; `namespace` is what it reads
 * from the link /proc/self/ns/pid.
 */
export function processSeenAs(pid: number, namespace: string): ProcessFact | undefined {
  const outside = readdirSync('/proc').find((name) => {
    try {
      if (!/^\d+$/.test(name) || readlinkSync(`/proc/${name}/ns/pid`) !== namespace) return false;
      const seenAs = /^NSpid:.*?(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, 'latin1'))?.[1];
      return Number(seenAs) === pid;
    } catch {
      return false; // it has ended, or may not be looked into
    }
  });
  return outside === undefined ? undefined : processFact(Number(outside));
}

function isAlive({ pid, startedAt }: ProcessFact): boolean {
  return processFact(pid)?.startedAt === startedAt;
}

/** Looks again and again until `fact` gives something other than `undefined` or false; rejects after `withinMs`. */
export async function eventually<T>(
  what: string,
  fact: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 10_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await fact();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
    await later(10);
  }
}

/** Resolves when all of them have ended. */
export async function gone(processes: readonly ProcessFact[], withinMs = 10_000): Promise<void> {
  const left = () => processes.filter(isAlive);
  await eventually('every process has ended', () => left().length === 0, withinMs).catch(() => {
    throw new Error(`still there: ${JSON.stringify(left())}`);
  });
}

/** The kernel host of a server: its guardian, and the zygote that forks the kernels. */
export function kernelHostOf(serverPid: number): { guardian: number; zygote: number } {
  const all = descendants(serverPid);
  // The server has other children, but none of them has a child of its own.
  const zygote = all.find(
    ({ parent }) => parent !== serverPid && all.some((p) => p.pid === parent && p.parent === serverPid),
  );
  const guardian = all.find(({ pid }) => pid === zygote?.parent);
  if (guardian === undefined || zygote === undefined) throw new Error('the server has no kernel host');
  return { guardian: guardian.pid, zygote: zygote.pid };
}

/** The kernels of a server, as the zygote's children: each is one, or the init of one. An init that waits for one is none. */
export function kernelsOf(serverPid: number): ProcessFact[] {
  const all = descendants(serverPid);
  const { zygote } = kernelHostOf(serverPid);
  const isWaiting = ({ pid }: ProcessFact) => isInit(pid) && !all.some(({ parent }) => parent === pid);
  return all.filter((one) => one.parent === zygote && !isWaiting(one));
}

/** Whether it is the first process of a namespace of its own. */
function isInit(pid: number): boolean {
  try {
    return /^NSpid:.*\t1$/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false; // it has ended
  }
}
