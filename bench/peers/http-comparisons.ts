/** Comparisons of a server's work without a kernel: starting, reading, saving. */
import { runClosedLoop } from '../load/closed-loop.ts';
import type { Comparison, Trial } from './comparison.ts';
import type { Repeated } from './subject.ts';

const CONNECTIONS = 64;

/** How fast saved notebooks are read. */
export const gets: Comparison = {
  name: 'gets',
  title: `A saved notebook is read over ${CONNECTIONS} connections`,
  unit: '/s',
  perRound: 1,
  targets: { peer: 12, limit: 0.7 },
  begin: async (subject, _, quick) => loadOf(await subject.reads?.(), quick),
};

/** How fast notebooks are saved. */
export const creates: Comparison = {
  name: 'creates',
  title: `Notebooks are created over ${CONNECTIONS} connections; Troupe and the limit flush each before the answer, the peers do not`,
  unit: '/s',
  perRound: 1,
  targets: { peer: 90, limit: 0.7 },
  begin: async (subject, _, quick) => loadOf(await subject.creates?.(), quick),
};

/** How fast a server starts. */
export const serverStart: Comparison = {
  name: 'server-start',
  title: 'The server is started on an empty directory: until its first answer',
  unit: 'ms',
  perRound: 1,
  targets: { peer: 1.3 },
  absent: { limit: 'it is no server' },
  async begin(subject, contestant) {
    if (subject.firstAnswerMs === undefined) return undefined;
    return {
      async sample() {
        const started = await contestant.launch();
        await started.end();
        return [started.firstAnswerMs!];
      },
      end: async () => undefined,
    };
  },
};

function loadOf(repeated: Repeated | undefined, quick: boolean): Trial | undefined {
  if (repeated === undefined) return undefined;
  const loop = {
    connections: CONNECTIONS,
    warmUpMs: 1_000,
    forMs: quick ? 1_000 : 2_000,
    leastAnswers: 2 * CONNECTIONS,
  };
  let first = 1; // no two requests of a comparison may create the same notebook
  return {
    async sample() {
      const { perSecond, lastNumber } = await runClosedLoop({ ...repeated, ...loop, firstNumber: first });
      first = lastNumber + 1;
      if (perSecond === 0) throw new Error(`Nothing was answered in some seconds.`);
      return [perSecond];
    },
    end: async () => undefined,
  };
}
