/**
 * Replaces or kills workers of a server that clients use, records the answers that clients get, and
 * judges the record at the end (`judge.ts`).
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { eventually, workersOf } from '#test/support/processes.ts';
import { SeededRandom } from '#test/support/random.ts';
import { autopsy } from './autopsy.ts';
import { History } from './history.ts';
import { extentOf, judge } from './judge.ts';
import { RecordedLoad } from './recorded-load.ts';
import { Victim } from './victim.ts';
import { chooseEnding, WorkerEndings } from './worker-endings.ts';

export interface RecordedOptions {
  readonly workers: number;
  readonly seed: number;
  /** Whether all workers are replaced in each step, in order (SIGHUP), or something is killed. */
  readonly disturbance: 'reload' | 'fault';
  /** The run ends after this many steps or after this time, whichever comes first. */
  readonly steps: number;
  readonly seconds: number;
  /** The longest delay that is added to the flush of a commit. */
  readonly slowFlushMs: number;
  readonly say: (line: string) => void;
}

export interface RecordedReport {
  readonly steps: number;
  /** How many entries of each kind the history has. */
  readonly extent: Readonly<Record<string, number>>;
  readonly endings: Readonly<Record<string, number>>;
}

const WORKSPACES = 2;
/** Ten times the time on a quiet machine. */
const MAX_RELOAD_MS = 300_000;
const MAX_START_MS = 60_000;
const RELOADED = 'workers are replaced no longer';
/** The longest time that the clients play between two steps. */
const MAX_CALM_MS = 800;
/** The errors that a kill logs. */
const EXPECTED = /"a worker has ended/;

/** Runs the steps. Throws with the violations, and keeps the data and the history then. */
export async function driveRecorded(options: RecordedOptions): Promise<RecordedReport> {
  const { say } = options;
  const folder = mkdtempSync(join(tmpdir(), 'troupe-recorded-'));
  using server = new DisturbedServer(folder, options);
  using history = new History(join(folder, 'history.jsonl'));
  const random = new SeededRandom(options.seed);
  const over = new AbortController();
  const endings: Record<string, number> = {};
  let steps = 0;
  let isReadBack = false;
  try {
    await server.start();
    const workspaceIds = await server.makeWorkspaces(WORKSPACES);
    const clientOf = (workspaceId: string) => server.victim?.clientOf(workspaceId);
    const load = new RecordedLoad({
      history,
      clientOf,
      workspaceIds,
      random: random.fork(),
      signal: over.signal,
    });
    await load.open();
    let failure: unknown;
    const playing = load.play().catch((error: unknown) => {
      failure = error;
    });
    const deadline = performance.now() + options.seconds * 1000;
    for (; steps < options.steps && performance.now() < deadline; steps++) {
      await later(random.below(MAX_CALM_MS));
      const how = await server.disturb(random);
      endings[how] = (endings[how] ?? 0) + 1;
      if (failure !== undefined) throw failure;
      server.requireNoComplaint();
      if (steps % 25 === 24) say(`${steps + 1} steps, ${history.entries.length} entries`);
    }
    over.abort(new Error('the steps are done'));
    await playing;
    if (failure !== undefined) throw failure;
    await load.readBack(server.dataDir);
    isReadBack = true;
    assert.deepEqual(judge(history.entries), [], 'the history is possible');
    await server.stop();
    server.requireNoComplaint();
  } catch (error) {
    say(`seed ${options.seed}, after ${steps} steps; the data and the history are in ${folder}`);
    // Records that were not read again would count as lost.
    if (isReadBack) for (const problem of judge(history.entries)) say(problem);
    for (const line of server.autopsy()) say(line);
    throw error;
  }
  rmSync(folder, { recursive: true, force: true });
  return { steps, extent: extentOf(history.entries), endings };
}

/** A server, and the faults that are caused in it. */
class DisturbedServer implements Disposable {
  readonly dataDir: string;
  readonly #options: RecordedOptions;
  readonly #endings = new WorkerEndings();
  victim: Victim | undefined;

  constructor(folder: string, options: RecordedOptions) {
    this.dataDir = join(folder, 'data');
    this.#options = options;
    mkdirSync(this.dataDir);
  }

  async start(): Promise<void> {
    const { workers, slowFlushMs } = this.#options;
    this.victim = await Victim.start(this.dataDir, undefined, {
      TROUPE_WORKERS: String(workers),
      FAULT_FOLDER: this.#endings.folder,
      FAULT_FLUSH_MS: String(slowFlushMs),
    });
  }

  async makeWorkspaces(count: number): Promise<string[]> {
    const ids: string[] = [];
    while (ids.length < count)
      ids.push((await this.#living.client.workspaces.create({ name: 'recorded' })).id);
    return ids;
  }

  /** Causes one fault, and resolves with its name once the server has all its workers again. */
  async disturb(random: SeededRandom): Promise<string> {
    const how = this.#options.disturbance === 'reload' ? await this.#reload() : await this.#end(random);
    await eventually('all workers serve', () => this.#hasAllWorkers(), MAX_START_MS);
    this.#requireLocks();
    return how;
  }

  async #reload(): Promise<string> {
    const { log, pid } = this.#living;
    const reloads = () => log.filter(({ msg }) => msg === RELOADED).length;
    const before = reloads();
    process.kill(pid, 'SIGHUP');
    await eventually('all workers are replaced', () => reloads() > before, MAX_RELOAD_MS);
    return 'reload';
  }

  async #end(random: SeededRandom): Promise<string> {
    const victim = this.#living;
    const ending = chooseEnding(random);
    if (ending.kind === 'primary' || ending.kind === 'drain') {
      this.victim = undefined;
      victim.end(ending.kind === 'drain' ? 'SIGTERM' : 'SIGKILL');
      await victim.over();
      await this.start();
      return ending.kind;
    }
    const end = await this.#endings.end(victim, ending, { random, playedIn: '', stop: () => undefined });
    return end?.how ?? 'none';
  }

  async #hasAllWorkers(): Promise<boolean> {
    const { workers } = await this.#living.client.server().catch(() => ({ workers: [] }));
    return (workers?.length ?? 0) === this.#options.workers;
  }

  /**
   * Every process that has the store open holds a lock on its lock file. If one lost that lock, the next process to open the
   * store would initialise it, while others commit to it.
   */
  #requireLocks(): void {
    const { dev, ino } = statSync(join(this.dataDir, 'store', 'lock.mdb'));
    const device = [dev >> 8, dev & 0xff].map((part) => part.toString(16).padStart(2, '0')).join(':');
    const lines = readFileSync('/proc/locks', 'latin1').split('\n');
    for (const { pid } of workersOf(this.#living.pid)) {
      const holds = lines.some(
        (line) =>
          line.includes(` READ  ${pid} ${device}:${ino} 0 0`) ||
          line.includes(` READ ${pid} ${device}:${ino} 0 0`),
      );
      assert.ok(holds, `the worker ${pid} holds no lock on the store: ${lines.join('\n')}`);
    }
  }

  /** Throws when the server has logged an error that a kill does not explain. */
  requireNoComplaint(): void {
    const isFault = this.#options.disturbance === 'fault';
    const [complaint] = (this.victim?.complaints ?? []).filter((line) => !(isFault && EXPECTED.test(line)));
    assert.equal(complaint, undefined, 'the server logs no error');
  }

  async stop(): Promise<void> {
    const victim = this.#living;
    victim.end('SIGTERM');
    await victim.over();
  }

  autopsy(): readonly string[] {
    return this.victim === undefined || this.victim.isOver ? [] : autopsy(this.victim, this.dataDir);
  }

  get #living(): Victim {
    if (this.victim === undefined) throw new Error('The server does not run.');
    return this.victim;
  }

  [Symbol.dispose](): void {
    this.victim?.end('SIGKILL');
    this.#endings[Symbol.dispose]();
  }
}
