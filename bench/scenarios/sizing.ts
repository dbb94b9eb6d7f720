import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { backUp } from '#src/operate/maintenance/backup.ts';
import { ChainWriter } from '#src/operate/maintenance/increment.ts';
import { markStore } from '#src/operate/maintenance/lineage.ts';
import { openStore } from '#storage/open-store.ts';
import { atMost, type Measure } from '../measure.ts';
import { processTree, proportionalBytes } from '../processes.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { putRuns, seed } from '../seed.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const [KIB, MIB] = [1024, 1024 * 1024];
const SESSIONS = 10;
const STREAMS = 20;

/**
 * The figures of docs/sizing.md: descriptors and memory of sessions and streams, bytes of runs, and increments of
 * backups.
 */
export const sizing: Scenario = {
  name: 'sizing',
  title: 'What a session, a stream and a run take, and increments of a backup of a store of 100,000 runs',
  limitS: 600,
  async run(stage) {
    return [...(await sessionsAndStreams(stage)), ...(await runsAndIncrements(stage))];
  },
};

async function sessionsAndStreams(stage: Stage): Promise<Measure[]> {
  const { api, pid, untilIdle, end } = await stage.server();
  const [emptyFiles, emptyBytes] = [filesOf(pid), proportionalBytes(processTree(pid))];
  const emptyOfAll = filesOfAll(pid);
  const ids: string[] = [];
  for (let n = 0; n < SESSIONS; n++)
    ids.push((await api.session(['import marimo as mo', 'x = 1', 'x + 1'])).id);
  await untilIdle();
  const [files, bytes, ofAll] = [filesOf(pid), proportionalBytes(processTree(pid)), filesOfAll(pid)];
  const feeds = [];
  for (let n = 0; n < STREAMS; n++) feeds.push(await api.follow(ids[n % SESSIONS]!));
  const followed = filesOf(pid);
  for (const feed of feeds) feed.close();
  await end();
  return [
    atMost('descriptors of an empty server', emptyFiles, ''),
    atMost('descriptors of the server for one session', (files - emptyFiles) / SESSIONS, ''),
    atMost('descriptors of all processes for one session', (ofAll - emptyOfAll) / SESSIONS, ''),
    atMost('descriptors of the server for one stream', (followed - files) / STREAMS, ''),
    atMost('memory of all processes for one session', (bytes - emptyBytes) / SESSIONS / MIB, 'MiB'),
  ];
}

async function runsAndIncrements(stage: Stage): Promise<Measure[]> {
  const folder = temporaryFolder('sizing');
  stage.after(folder.remove);
  const dataDir = join(folder.path, 'data');
  const runs = stage.count(100_000);
  const { notebookIds, environmentIds } = await seed(dataDir, { notebooks: 1_000, sessions: 100, runs });
  await using store = await openStore(join(dataDir, 'store'), (error) => {
    throw error;
  });
  const sizeMiB = () => store.extent().usedBytes / MIB;
  const measures: Measure[] = [atMost('store with all runs', sizeMiB(), 'MiB')];
  const directory = join(folder.path, 'backup');
  const copyStore = (to: string, compact: boolean) => store.copyTo(to, compact);
  const startedAt = performance.now();
  await backUp({ dataDir, to: directory, copyStore, mark: await markStore(store) });
  measures.push(atMost('backup', performance.now() - startedAt, 'ms'));
  const writer = ChainWriter.open({ directory, dataDir, store });
  if (writer === undefined) throw new Error('Nothing can be added to the backup.');
  for (const more of [0, 1, 100, 1_000, 10_000]) {
    const before = store.extent();
    for (let n = 0; n < more; n += 20) {
      // Twenty runs are a commit, as on a busy server; each session has some of them.
      putRuns(store, Math.min(20, more - n), notebookIds, environmentIds, n);
      await store.durable();
    }
    const grown = store.extent().usedBytes - before.usedBytes;
    const beganAt = performance.now();
    const added = await writer.add();
    const tookMs = performance.now() - beganAt;
    const label = `increment after ${more.toLocaleString('en')} runs`;
    measures.push(
      atMost(`${label}, time`, tookMs, 'ms'),
      atMost(`${label}, size`, (added?.pageBytes ?? 0) / MIB, 'MiB'),
    );
    if (more >= 1_000)
      measures.push(atMost(`${label}, growth of the store for one run`, grown / more / KIB, 'KiB'));
  }
  return measures;
}

function filesOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function filesOfAll(pid: number): number {
  return processTree(pid).reduce((sum, one) => sum + filesOf(one), 0);
}
