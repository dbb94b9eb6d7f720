/** Comparisons of a session's work: opening, running, calling, cancelling, dying. */
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../measure.ts';
import { cpuMs, processTree } from '../processes.ts';
import type { Comparison, Trial } from './comparison.ts';
import type { Session, Subject } from './subject.ts';

const SESSIONS = 8;
const CHAIN = 100;
const LOOP = 'print("it has begun")\nwhile True:\n    pass';
const BEGUN = 'it has begun';
/** How long the processes of a closed session may take to end. */
const MAX_ENDING_MS = 2_000;

/** How long it takes until a session can be used. */
export const sessionReady: Comparison = {
  name: 'session-ready',
  title: 'A saved notebook is opened: until its session can run something',
  unit: 'ms',
  perRound: 4,
  quickPerRound: 1,
  targets: { peer: 8 },
  async begin(subject) {
    if (subject.prepare === undefined) return undefined;
    const idle = processTree(subject.pid).length;
    return {
      async sample() {
        const open = await subject.prepare!(['x = 1\nx + 1']);
        const startedAt = performance.now();
        const session = await open();
        const tookMs = performance.now() - startedAt;
        await session.close();
        await untilEnded(subject, idle); // otherwise the end of one session would slow down the next session
        return [tookMs];
      },
      end: async () => undefined,
    };
  },
};

/** How long a run takes. The limit flushes one page after it. */
export const run: Comparison = {
  name: 'run',
  title: 'A cell `1+1` is run: until the client knows that it has ended',
  unit: 'ms',
  perRound: 100,
  quickPerRound: 10,
  targets: { peer: 2.5, limit: 1.6 },
  async begin(subject) {
    const aloneMs: number[] = [];
    const trial = await inSession(subject, ['1+1'], async (session) => {
      const startedAt = performance.now();
      const ranMs = (await session.run(0)) - startedAt;
      if (session.flush === undefined) return ranMs;
      aloneMs.push(ranMs);
      await session.flush();
      return performance.now() - startedAt;
    });
    const asides = () =>
      aloneMs.length === 0
        ? []
        : [{ label: 'p50 without a flush', unit: 'ms', value: median(aloneMs) } as const];
    return trial && { ...trial, asides };
  },
};

/** How long a call of an agent takes. */
export const codeCall: Comparison = {
  name: 'code-call',
  title: '`1+1` is run outside of the cells, as agents do: until the answer',
  unit: 'ms',
  perRound: 50,
  quickPerRound: 5,
  targets: { peer: 8, limit: 1.6 },
  begin: (subject) => inSession(subject, ['x = 1'], (session) => timed(() => session.call('1+1'))),
};

/** How long a notebook of dependent cells takes. */
export const chain: Comparison = {
  name: 'chain',
  title: `${CHAIN} cells, each of which uses the one before, are run at once`,
  unit: 'ms',
  perRound: 5,
  quickPerRound: 1,
  targets: { peer: 2, limit: 1.1 },
  begin(subject) {
    const codes = Array.from({ length: CHAIN }, (_, i) => (i === 0 ? 'v0 = 1' : `v${i} = v${i - 1} + 1`));
    return inSession(subject, codes, (session) => timed(() => session.run()));
  },
};

/** How long a cancel takes. */
export const cancel: Comparison = {
  name: 'cancel',
  title: 'Cancelling an endless loop: the time until the client knows that the loop has ended',
  unit: 'ms',
  perRound: 10,
  quickPerRound: 2,
  targets: { peer: 1.2, tail: true },
  begin: (subject) =>
    inSession(subject, [LOOP], async (session) => {
      const begun = session.printed(BEGUN);
      const ended = session.run(0);
      await begun;
      const startedAt = performance.now();
      session.interrupt();
      const tookMs = (await ended) - startedAt;
      await session.idle();
      return tookMs;
    }),
};

/** How much work several sessions do together. */
export const eightSessions: Comparison = {
  name: 'eight-sessions',
  title: `${SESSIONS} sessions, each of which runs \`1+1\` again as soon as it has ended`,
  unit: '/s',
  perRound: 1,
  targets: { peer: 3.5, limit: 0.75 },
  async begin(subject, _, quick) {
    if (subject.prepare === undefined) return undefined;
    const sessions: Session[] = [];
    for (let i = 0; i < SESSIONS; i++) sessions.push(await (await subject.prepare(['1+1']))());
    const forMs = quick ? 700 : 1_500;
    return {
      async sample() {
        let count = 0;
        const startedAt = performance.now();
        await Promise.all(
          sessions.map(async (session) => {
            for (; performance.now() - startedAt < forMs; count++) {
              await session.run(0);
              await session.flush?.();
            }
          }),
        );
        return [(count * 1000) / (performance.now() - startedAt)];
      },
      async end() {
        for (const session of sessions) await session.close();
      },
    };
  },
};

/** How long it takes until a client learns that a kernel has died. */
export const kernelDeath: Comparison = {
  name: 'kernel-death',
  title: 'A busy kernel is killed: until the client is told',
  unit: 'ms',
  perRound: 1,
  targets: {},
  async begin(subject) {
    if (subject.prepare === undefined) return undefined;
    return {
      async sample() {
        const before = new Set(processTree(subject.pid));
        const session = await (await subject.prepare!([LOOP]))();
        const begun = session.printed(BEGUN);
        session.run(0).catch(() => undefined); // the session ends with the kernel
        await begun;
        const kernel = busiest(processTree(subject.pid).filter((pid) => !before.has(pid)));
        const lost = session.lost();
        const startedAt = performance.now();
        process.kill(kernel, 'SIGKILL');
        const tookMs = (await lost) - startedAt;
        await session.close().catch(() => undefined); // some sessions have closed it already
        return [tookMs];
      },
      end: async () => undefined,
    };
  },
};

/** Returns a trial whose samples are taken in one session. */
async function inSession(
  { prepare }: Subject,
  codes: readonly string[],
  measure: (session: Session) => Promise<number>,
): Promise<Trial | undefined> {
  if (prepare === undefined) return undefined;
  const session = await (await prepare(codes))();
  return { sample: async () => [await measure(session)], end: () => session.close() };
}

async function timed(work: () => Promise<number>): Promise<number> {
  const startedAt = performance.now();
  return (await work()) - startedAt;
}

/** Returns the process that has used the most processor time. */
function busiest(pids: readonly number[]): number {
  const [first] = pids.toSorted((a, b) => cpuMs([b]) - cpuMs([a]));
  if (first === undefined) throw new Error('There is no kernel process.');
  return first;
}

async function untilEnded({ pid }: Subject, processes: number): Promise<void> {
  const deadline = performance.now() + MAX_ENDING_MS;
  while (processTree(pid).length > processes && performance.now() < deadline) await sleep(5);
}
