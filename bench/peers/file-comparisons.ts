/** Comparisons of notebook files on the command line: wall time of whole commands. */
import type { Comparison } from './comparison.ts';

const CELLS = ['import math', 'total = sum(math.sqrt(n) for n in range(1000))', 'print(total)\ntotal'];
const FILES = 10;
const absent = {
  limit: 'it has no command line',
  'jupyter-tuned': 'its command line is that of jupyter',
} as const;

/** How long a command takes that runs a notebook file and writes a file with the outputs. */
export const commandRun: Comparison = {
  name: 'command-run',
  title:
    'A notebook file is run from the command line, and a file with its outputs is written: `troupe run -o`, `marimo export html`, `papermill`',
  unit: 'ms',
  perRound: 2,
  quickPerRound: 1,
  targets: {},
  absent,
  begin: async ({ runFile }) => trialOf(await runFile?.(CELLS)),
};

/** How long the import of ten notebooks of Jupyter takes. */
export const convertFiles: Comparison = {
  name: 'convert-files',
  title: `${FILES} files of Jupyter with 5 to 50 cells become notebooks of marimo: one \`troupe notebooks import\`, ${FILES} times \`marimo convert\``,
  unit: 'ms',
  perRound: 1,
  targets: {},
  absent: { ...absent, jupyter: 'its notebooks are such files' },
  begin: async ({ convertFiles: convert }) => trialOf(await convert?.(FILES)),
};

/** How long it takes to export a notebook that was run. */
export const exportPage: Comparison = {
  name: 'export-page',
  title: 'A notebook that was run is exported as an HTML page, over HTTP',
  unit: 'ms',
  perRound: 10,
  quickPerRound: 2,
  targets: {},
  absent: { ...absent, jupyter: 'its server converts files, and not the outputs of a session' },
  begin: async ({ exportPage: exported }) => trialOf(await exported?.(CELLS)),
};

function trialOf(work: (() => Promise<void>) | undefined) {
  if (work === undefined) return undefined;
  return {
    async sample() {
      const startedAt = performance.now();
      await work();
      return [performance.now() - startedAt];
    },
    end: async () => undefined,
  };
}
