import { atMost, type Measure, median, spread } from '../measure.ts';
import { cpuMs, processTree, residentBytes } from '../processes.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { type Stock, seed } from '../seed.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const MIB = 1024 * 1024;
const EMPTY: Stock = { notebooks: 0, sessions: 0, runs: 0 };

interface Start {
  readonly firstAnswerMs: number;
  readonly readyMs: number;
  readonly memoryMiB: number;
  /** Processor time until idle, of the server process and of its children. */
  readonly serverMs: number;
  readonly childrenMs: number;
}

/** How fast a server starts. */
export const serverStart: Scenario = {
  name: 'server-start',
  title:
    'From the start of the process until its first response and until ready, on an empty and on a used directory',
  limitS: 240,
  async run(stage) {
    const stocks: readonly (readonly [string, Stock])[] = [
      ['empty', EMPTY],
      ['10,000 notebooks', { notebooks: 10_000, sessions: 0, runs: 0 }],
      ['10,000 open sessions, 100,000 runs', { notebooks: 10_000, sessions: 10_000, runs: 100_000 }],
    ];
    const directories: string[] = [];
    for (const [, stock] of stocks) {
      const { path: directory, remove } = temporaryFolder('seed');
      stage.after(remove);
      await seed(directory, stock);
      directories.push(directory);
    }
    const starts = stocks.map((): Start[] => []);
    for (let round = 0; round < stage.count(8, 2); round++) {
      for (const [i, directory] of directories.entries()) starts[i]!.push(await start(stage, directory));
    }
    const [empty, notebooks, sessions] = starts.map((all) => ({
      firstAnswer: all.map((one) => one.firstAnswerMs),
      ready: all.map((one) => one.readyMs),
      serverMs: all.map((one) => one.serverMs),
      childrenMs: all.map((one) => one.childrenMs),
      memoryMiB: median(all.map((one) => one.memoryMiB)),
    }));
    const measures: Measure[] = [
      spread('empty, first answer', empty!.firstAnswer, { p50: 250 }),
      spread('empty, ready', empty!.ready, { p50: 650 }),
      spread('empty, CPU of the server until it is idle', empty!.serverMs),
      spread('empty, CPU of the kernel host until it is idle', empty!.childrenMs),
      spread(`${stocks[1]![0]}, ready`, notebooks!.ready),
      atMost(`${stocks[1]![0]}, ready, to empty`, median(notebooks!.ready) / median(empty!.ready), '×', 1.1),
      spread(`${stocks[2]![0]}, ready`, sessions!.ready, { max: 2_000 }),
      atMost(`${stocks[2]![0]}, more memory`, sessions!.memoryMiB - empty!.memoryMiB, 'MiB', 200),
    ];
    return measures;
  },
};

async function start(stage: Stage, dataDir: string): Promise<Start> {
  const server = await stage.server({ dataDir });
  const { firstAnswerMs, readyMs, pid } = server;
  const memoryMiB = residentBytes(pid) / MIB;
  const [serverMs, childrenMs] = [cpuMs([pid]), cpuMs(processTree(pid).slice(1))];
  await server.end();
  return { firstAnswerMs, readyMs, memoryMiB, serverMs, childrenMs };
}
