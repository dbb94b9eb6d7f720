/**
 * Cuts the power of the disk below a store, after the fact: records the writes and flushes of a process while it works, and makes for
 * many moments a file as a power cut can leave it (`cut-disk.ts`). Each file is opened as a start of the server opens it. It must have
 * everything that was acknowledged before that moment, every turn whole or not at all, and take another write.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StoreFile } from '#storage/disk/store-file.ts';
import { DATA_FILE, isUnfinished, requireSoundFile } from '#storage/disk/store-folder.ts';
import { openStore } from '#storage/open-store.ts';
import type { Store } from '#storage/store.ts';
import { SeededRandom } from '#test/support/random.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import {
  compileRecorder,
  type LogEntry,
  LogNotes,
  readLog,
  recordedEnvironment,
} from '#test/support/store/write-log.ts';
import { Victim } from '../victim.ts';
import { CountedTurns, TURNS_SCRIPT, writeAnotherTurn } from './counted-turns.ts';
import { CutDisk, LOSSES, type Loss } from './cut-disk.ts';
import { Acknowledged, runCells, saveNotebooks } from './noted-clients.ts';

export interface PowerCutOptions {
  readonly seed: number;
  /** How many cuts of a store that counts turns. */
  readonly storeCuts: number;
  /** How many cuts of the store of a server that clients use. */
  readonly serverCuts: number;
  /** How many of these files a server serves again. */
  readonly restarts: number;
  readonly workers?: number;
  /** Makes the disk lie about its flushes, so that the check must fail. */
  readonly flushesLate?: boolean;
  readonly say: (line: string) => void;
}

export interface PowerCutReport {
  readonly cuts: number;
  /** Cuts while some writes were not flushed. */
  readonly withPendingWrites: number;
  /** How many cuts there were of each kind. */
  readonly losses: Readonly<Partial<Record<Loss, number>>>;
  readonly writes: number;
  readonly flushes: number;
  readonly restarts: number;
}

/** The content that the store must have after a cut, for one recording. */
interface Promises {
  begun(text: string): void;
  acknowledged(text: string): void;
  problemOf(store: Store): string | undefined;
  /** Writes as the recorded process did. */
  writeMore(store: Store): Promise<void>;
}

/** Makes the cuts. Throws when a cut has lost something, and keeps the files of that cut then. */
export async function drivePowerCuts(options: PowerCutOptions): Promise<PowerCutReport> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-power-cuts-'));
  const recorder = compileRecorder(folder);
  const drive = new PowerCuts(folder, recorder, options);
  try {
    if (options.storeCuts > 0) await drive.cutStore();
    if (options.serverCuts > 0) await drive.cutServer();
  } catch (error) {
    if (options.flushesLate === true) rmSync(folder, { recursive: true });
    else options.say(`seed ${options.seed}; the logs and the last file are in ${folder}`);
    throw error;
  }
  rmSync(folder, { recursive: true, force: true });
  return drive.report;
}

/** Turns, and steps of clients, for each cut. */
const TURNS_PER_CUT = 2;
const STEPS_PER_CUT = 0.5;
const CLIENTS = 4;
/** So many of the cuts are in the first opening of the store, which has only so many entries. */
const EARLY_SHARE = 0.15;
const EARLY_ENTRIES = 12;

class PowerCuts {
  readonly #folder: string;
  readonly #recorder: string;
  readonly #options: PowerCutOptions;
  readonly #random: SeededRandom;
  readonly #losses: Partial<Record<Loss, number>> = {};
  #cuts = 0;
  #withPendingWrites = 0;
  #writes = 0;
  #flushes = 0;
  #restarts = 0;

  constructor(folder: string, recorder: string, options: PowerCutOptions) {
    this.#folder = folder;
    this.#recorder = recorder;
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  get report(): PowerCutReport {
    return {
      cuts: this.#cuts,
      withPendingWrites: this.#withPendingWrites,
      losses: this.#losses,
      writes: this.#writes,
      flushes: this.#flushes,
      restarts: this.#restarts,
    };
  }

  /** Cuts a store that a process opens, writes and closes twice. */
  async cutStore(): Promise<void> {
    const { seed, storeCuts } = this.#options;
    const [path, log] = [join(this.#folder, 'turns'), join(this.#folder, 'turns.log')];
    const turns = Math.max(40, storeCuts * TURNS_PER_CUT);
    const half = Math.floor(turns / 2);
    mkdirSync(path);
    const environment = { ...process.env, ...recordedEnvironment(this.#recorder, path, log) };
    for (const [first, last] of [
      [1, half],
      [half + 1, turns],
    ]) {
      const args = ['--conditions=development', TURNS_SCRIPT, path, log, String(seed), `${first}`, `${last}`];
      const { status, stderr } = spawnSync(process.execPath, args, { env: environment, encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    }
    const counted = new CountedTurns(seed, turns + 1);
    let [begun, acknowledged] = [0, 0];
    await this.#cutEach(this.#entriesOf(log, path), storeCuts, {
      begun(text) {
        begun = Number(text);
      },
      acknowledged(text) {
        acknowledged = Number(text);
      },
      problemOf: (store) => counted.problemOf(store, acknowledged, begun),
      writeMore: (store) => writeAnotherTurn(store, seed),
    });
  }

  /** Cuts the store of a server that clients use. */
  async cutServer(): Promise<void> {
    const { serverCuts, restarts, workers = 1 } = this.#options;
    const [dataDir, log] = [join(this.#folder, 'data'), join(this.#folder, 'server.log')];
    const store = join(dataDir, 'store');
    mkdirSync(dataDir);
    using notes = new LogNotes(log);
    const victim = await Victim.start(dataDir, undefined, {
      TROUPE_WORKERS: String(workers),
      ...recordedEnvironment(this.#recorder, store, log),
    });
    const steps = Math.ceil(serverCuts * STEPS_PER_CUT);
    const { client } = victim;
    try {
      await Promise.all([
        ...Array.from({ length: CLIENTS }, () => saveNotebooks(client, notes, steps)),
        runCells(client, notes, steps),
      ]);
    } finally {
      victim.end('SIGTERM');
      await victim.over();
    }
    assert.deepEqual(victim.complaints, []);
    const promised = new Acknowledged();
    const restartEvery = Math.max(1, Math.floor(serverCuts / Math.max(1, restarts)));
    await this.#cutEach(
      this.#entriesOf(log, store),
      serverCuts,
      {
        begun: (text) => promised.begun(text),
        acknowledged: (text) => promised.acknowledged(text),
        problemOf: (opened) => promised.problemOf(opened, OWNER.workspaceId),
        writeMore: (opened) => writeAnotherTurn(opened, 0),
      },
      async (image, cut) => {
        if (this.#restarts >= restarts || cut % restartEvery !== restartEvery - 1) return;
        if (promised.notebooks.size > 0) await this.#serve(image, dataDir, promised);
      },
    );
  }

  /** Returns the entries of a log. Throws unless they make the file that the recorded process left. */
  #entriesOf(log: string, path: string): LogEntry[] {
    const entries = readLog(log);
    const disk = new CutDisk(entries);
    disk.advance(entries.length);
    const made = disk.cut('all kept', new SeededRandom(0));
    assert.ok(made?.equals(readFileSync(join(path, DATA_FILE))), 'the log has every write to the file');
    this.#writes += entries.filter(({ kind }) => kind === 'write').length;
    this.#flushes += entries.filter(({ kind }) => kind === 'flush' || kind === 'written').length;
    return entries;
  }

  async #cutEach(
    entries: readonly LogEntry[],
    cuts: number,
    promises: Promises,
    afterwards: (image: Buffer, cut: number) => Promise<void> = async () => undefined,
  ): Promise<void> {
    const random = this.#random.fork();
    const placeOf = () => random.below(random.is(EARLY_SHARE) ? EARLY_ENTRIES : entries.length + 1);
    const places = Array.from({ length: cuts }, placeOf).sort((a, b) => a - b);
    const disk = new CutDisk(entries, { flushesLate: this.#options.flushesLate ?? false });
    let noted = 0;
    for (const [cut, place] of places.entries()) {
      disk.advance(place);
      for (; noted < place; noted++) {
        const entry = entries[noted]!;
        if (entry.kind === 'begun') promises.begun(entry.text);
        else if (entry.kind === 'acknowledged') promises.acknowledged(entry.text);
      }
      const loss = random.pick(LOSSES);
      this.#losses[loss] = (this.#losses[loss] ?? 0) + 1;
      this.#cuts++;
      if (disk.pendingWrites > 0) this.#withPendingWrites++;
      const image = disk.cut(loss, random);
      try {
        await this.#check(image, promises, random);
        if (image !== undefined) await afterwards(image, cut);
      } catch (error) {
        throw new Error(
          `A cut at entry ${place} of ${entries.length} (${loss} of ${disk.pendingWrites} writes) broke the store`,
          {
            cause: error,
          },
        );
      }
      if (cut % 100 === 99) this.#options.say(`${cut + 1} cuts`);
    }
  }

  async #check(image: Buffer | undefined, promises: Promises, random: SeededRandom): Promise<void> {
    const root = join(this.#folder, 'cut');
    const path = this.#place(root, image, random);
    if (isUnfinished(root, join(root, 'keyring.json'))) rmSync(join(path, DATA_FILE));
    else requireSound(path);
    const store = await openStore(path, assert.fail);
    try {
      assert.equal(promises.problemOf(store), undefined);
      for (const { key, problem } of store.checkAll()) assert.equal(problem, undefined, key.join('/'));
      await promises.writeMore(store);
    } finally {
      await store[Symbol.asyncDispose]();
    }
    requireSound(path);
  }

  /** Makes the store of a data directory from a file after a cut. */
  #place(root: string, image: Buffer | undefined, random: SeededRandom): string {
    const path = join(root, 'store');
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true });
    if (image !== undefined) writeFileSync(join(path, DATA_FILE), image);
    // These files are never flushed, and a cut may leave any of it.
    if (random.is(0.5))
      writeFileSync(join(path, 'lock.mdb'), random.is(0.5) ? random.bytes(16_592) : Buffer.alloc(8192));
    if (random.is(0.3)) writeFileSync(join(path, 'place'), '');
    return path;
  }

  /** Starts a server on the file, and asks it for everything. */
  async #serve(image: Buffer, from: string, promised: Acknowledged): Promise<void> {
    this.#restarts++;
    const root = join(this.#folder, 'served');
    rmSync(root, { recursive: true, force: true });
    cpSync(from, root, { recursive: true, filter: (name) => !name.startsWith(join(from, 'store')) });
    this.#place(root, image, this.#random.fork());
    const victim = await Victim.start(root, undefined, {
      TROUPE_WORKERS: String(this.#options.workers ?? 1),
    });
    try {
      assert.equal(await promised.problemAt(victim.client), undefined);
      const { id } = await victim.client.notebooks.create();
      await victim.client.notebooks.get(id);
    } finally {
      victim.end('SIGTERM');
      await victim.over();
    }
    assert.deepEqual(victim.complaints, []);
  }
}

function requireSound(path: string): void {
  requireSoundFile(path);
  using file = openIfThere(join(path, DATA_FILE));
  assert.deepEqual(file?.walk().damage ?? [], []);
}

function openIfThere(path: string): StoreFile | undefined {
  try {
    return StoreFile.open(path);
  } catch {
    return undefined; // the cut came before the file had a name on the disk
  }
}
