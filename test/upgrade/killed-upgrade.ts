/**
 * Starts servers of the next release on a store of the present one, and kills each while it converts the store. The last
 * server is not killed.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { type LogLine, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import {
  asNextRelease,
  checkConvertedStore,
  NEXT_RELEASE,
  placeOfConversion,
  writeRuns,
} from './many-runs.ts';

const LOOK_EVERY_MS = 20;
const CONVERTS = 'the store is being converted to the format of this release';

export interface KilledUpgradeOptions {
  readonly dataDir: string;
  readonly runs: number;
  readonly kills: number;
  readonly say?: (line: string) => void;
}

/**
 * Resolves with the lines of progress of the start that was not killed, once everything is checked.
 */
export async function killedUpgrade(options: KilledUpgradeOptions): Promise<readonly LogLine[]> {
  const { dataDir, runs, kills, say = () => {} } = options;
  const s = (since: number) => ((performance.now() - since) / 1000).toFixed(1);
  let since = performance.now();
  await writeRuns(dataDir, runs);
  say(`${runs} runs written in ${s(since)} s`);
  using _next = asNextRelease();
  since = performance.now();
  let before = await placeOfConversion(dataDir);
  for (let kill = 1; kill <= kills; kill++) {
    const server = startConverting(options);
    const reached = await furtherThan(before, Math.floor(runs / kills / 2), dataDir, server);
    await server.kill();
    const [first] = server.progress();
    if (reached.format === before.format)
      assert.ok(
        Number(first?.done) >= before.done,
        `${first?.done} records done where ${before.done} were committed`,
      );
    say(`kill ${kill}: format ${reached.format}, ${reached.done} records of its step`);
    before = reached;
  }
  const server = startConverting(options);
  await server.ready;
  say(`ready ${s(since)} s after the first start, ${kills} kills between`);
  const lines = server.progress();
  await server.kill();
  await checkConvertedStore(dataDir, runs);
  return lines;
}

interface Converting {
  readonly ready: Promise<unknown>;
  isOver(): boolean;
  progress(): LogLine[];
  kill(): Promise<void>;
}

function startConverting({ dataDir }: KilledUpgradeOptions): Converting {
  const { PATH = '', HOME = '' } = process.env;
  const settings = { ...SETTINGS, ...pythonOfTests(), ...NEXT_RELEASE.env, TROUPE_DATA_DIR: dataDir };
  const child = spawn(process.execPath, NEXT_RELEASE.command, {
    cwd: dataDir,
    env: { PATH, HOME, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'close');
  const log: LogLine[] = [];
  const ready = new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const entry = JSON.parse(line) as LogLine;
      log.push(entry);
      if (entry.msg === 'ready') resolve(entry);
    });
    void ended.then(() => reject(new Error('the server ended before it was ready')));
  });
  ready.catch(() => {});
  return {
    ready,
    isOver: () => child.exitCode !== null || log.some(({ msg }) => msg === 'ready'),
    progress: () => log.filter(({ msg }) => msg === CONVERTS),
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Resolves once this many more records are committed, or the next step has begun. */
async function furtherThan(
  before: { readonly format: number; readonly done: number },
  more: number,
  dataDir: string,
  server: Converting,
): Promise<typeof before> {
  for (;;) {
    const now = await placeOfConversion(dataDir);
    if (now.format > before.format || now.done >= before.done + more) return now;
    assert.ok(!server.isOver(), 'the conversion was over before it could be killed: use more runs');
    await pause(LOOK_EVERY_MS);
  }
}
