/**
 * Ends workers of a server in rounds while several players use it. A worker's death ends a life of
 * the players, not the server: they stop, and everything acknowledged is checked on the server,
 * which continues. Sometimes the whole server ends, and everything is checked on the next one. A
 * seed determines all choices; only the timing of processes varies.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { anySignal } from '#src/base/async/any-signal.ts';
import type { Client } from '#src/contract/client/client.ts';
import { eventually, kernelsOf } from '#test/support/processes.ts';
import { SeededRandom } from '#test/support/random.ts';
import { autopsy } from './autopsy.ts';
import { Player } from './player.ts';
import { settle } from './settle.ts';
import { Victim } from './victim.ts';
import { chooseEnding, type Ending, WorkerEndings } from './worker-endings.ts';

/** The options of a run. */
export interface WorkerFaultOptions {
  readonly workers: number;
  readonly seed: number;
  /** The run ends after this time or this many rounds, whichever comes first. */
  readonly seconds: number;
  readonly rounds: number;
  /** How long it may take after a death until every workspace is served again. */
  readonly outageLimitMs: number;
  readonly say: (line: string) => void;
}

/** The results of a run. */
export interface WorkerFaultReport {
  readonly rounds: number;
  readonly operations: number;
  /** Milliseconds from each death until every workspace was served again, sorted. */
  readonly outagesMs: readonly number[];
  readonly endings: Readonly<Record<string, number>>;
}

const PLAYERS = 6;
/** Players share a workspace, whose notebooks are at home in different workers. */
const WORKSPACES = 2;
/** The chance that all of them have the same home among three workers is one in some thousands. */
const SERVED_NOTEBOOKS = 8;
const MAX_START_MS = 30_000;
const MAX_KERNEL_END_MS = 5_000;
/** How long a death may be noticed after it broke a connection. */
const MAX_NOTICE_MS = 1_000;
/** How long a workspace may not be served before the run gives up. */
const MAX_OUTAGE_MS = 20_000;

/** Runs the rounds. Throws the first broken promise, with the command that repeats it. */
export async function driveWorkerFaults(options: WorkerFaultOptions): Promise<WorkerFaultReport> {
  const { workers, seed, seconds, rounds: limit, say } = options;
  const random = new SeededRandom(seed);
  using rounds = new Rounds(workers, options.outageLimitMs);
  const endings: Record<string, number> = {};
  const deadline = performance.now() + seconds * 1000;
  let round = 0;
  let ending: Ending | undefined;
  try {
    for (; round < limit && performance.now() < deadline; round++) {
      ending = chooseEnding(random);
      const how = await rounds.play(ending, random.fork());
      endings[how] = (endings[how] ?? 0) + 1;
      if (round % 25 === 24) say(`${round + 1} rounds`);
    }
    // One more round checks the promises of the last one.
    await rounds.play({ kind: 'drain', afterMs: 0, early: false }, random.fork());
  } catch (error) {
    const again = `npm run faults -- --workers ${workers} --seed ${seed} --rounds ${round + 1}`;
    say(`seed ${seed}, round ${round}, ${JSON.stringify(ending)}: again with  ${again}`);
    say(`the data is in ${rounds.dataDir}`);
    for (const line of rounds.autopsy()) say(line);
    throw error;
  }
  rmSync(rounds.dataDir, { recursive: true, force: true });
  const outagesMs = rounds.outagesMs.sort((a, b) => a - b);
  return { rounds: round, operations: rounds.operations, outagesMs, endings };
}

/** The players, and the server that they use. */
class Rounds implements Disposable {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'troupe-worker-faults-'));
  readonly outagesMs: number[] = [];
  readonly #endings = new WorkerEndings();
  readonly #players = Array.from({ length: PLAYERS }, (_, i) => new Player(`player${i}`));
  readonly #size: number;
  readonly #outageLimitMs: number;
  readonly #workspaces: string[] = [];
  #victim: Victim | undefined;
  /** The first answer that a player knows to be wrong. */
  #wrong: unknown;

  constructor(size: number, outageLimitMs: number) {
    this.#size = size;
    this.#outageLimitMs = outageLimitMs;
  }

  get operations(): number {
    return this.#players.reduce((sum, { operations }) => sum + operations, 0);
  }

  /** Checks, lets the players play, and ends something. Returns the kind of the end; `none` when no fault point was reached. */
  async play(ending: Ending, random: SeededRandom): Promise<string> {
    const victim = await this.#living();
    const over = new AbortController();
    const signal = anySignal(over.signal, victim.signal);
    const checked = this.#check(victim, signal);
    const sequences = this.#players.map(() => random.fork());
    const played = unlessExplained(signal, async () => {
      await checked;
      await this.#playAll(victim, sequences, signal);
    });
    if (!ending.early) await Promise.race([checked.catch(() => undefined), played]);
    await Promise.race([played, later(ending.afterMs)]);
    const how = await this.#end(victim, ending, random, () => over.abort(new Error('the round is over')));
    await played;
    assert.ifError(this.#wrong);
    await Promise.all(this.#players.map((player) => player.rest(ending.kind === 'drain')));
    const [complaint] = victim.complaints.filter((line) => !line.includes('"a worker has ended'));
    assert.equal(complaint, undefined, 'the server logs no error');
    return how;
  }

  /** Returns lines about the present state of the server, if there is one. */
  autopsy(): readonly string[] {
    return this.#victim === undefined ? [] : autopsy(this.#victim, this.dataDir);
  }

  /** Kills the server, if there is one. */
  [Symbol.dispose](): void {
    this.#victim?.end('SIGKILL');
    this.#endings[Symbol.dispose]();
  }

  /** Returns the server with all its workers. Starts the server if it does not run. */
  async #living(): Promise<Victim> {
    this.#victim ??= await Victim.start(this.dataDir, undefined, {
      TROUPE_WORKERS: String(this.#size),
      FAULT_FOLDER: this.#endings.folder,
    });
    const victim = this.#victim;
    while (this.#workspaces.length < WORKSPACES) {
      this.#workspaces.push((await victim.client.workspaces.create({ name: 'played in' })).id);
    }
    const count = async () => (await victim.client.server()).workers?.length ?? 0;
    await eventually('all workers serve', async () => (await count()) === this.#size, MAX_START_MS);
    return victim;
  }

  #clientOf(victim: Victim, player: number): Client {
    return victim.clientOf(this.#workspaces[player % WORKSPACES]!);
  }

  /**
   * Checks the server's promises to every player, and that there is no kernel without a
   * session.
   */
  async #check(victim: Victim, signal: AbortSignal): Promise<void> {
    await Promise.all(
      this.#players.map(async (player, i) => {
        const client = this.#clientOf(victim, i);
        if (player.wasOpened) await settle(client, player.notebookId, signal);
        await player.verify(client, signal);
      }),
    );
    const open = this.#players.filter(({ isOpen }) => isOpen).length;
    await eventually(
      `there are no more than ${open} kernels`,
      () => signal.aborted || kernelsOf(victim.pid).length <= open,
      MAX_KERNEL_END_MS,
    );
  }

  async #playAll(victim: Victim, sequences: readonly SeededRandom[], signal: AbortSignal): Promise<void> {
    await Promise.all(
      this.#players.map((player, i) =>
        player.play(this.#clientOf(victim, i), sequences[i]!, signal).catch((error: unknown) => {
          // The end of a round explains a missing answer, but not a wrong one.
          if (error instanceof assert.AssertionError) this.#wrong ??= error;
          throw error;
        }),
      ),
    );
  }

  async #end(victim: Victim, ending: Ending, random: SeededRandom, stop: () => void): Promise<string> {
    if (ending.kind === 'primary' || ending.kind === 'drain') {
      stop();
      victim.end(ending.kind === 'drain' ? 'SIGTERM' : 'SIGKILL');
      await victim.over();
      this.#victim = undefined;
      return ending.kind;
    }
    const playedIn = random.pick(this.#players).notebookId;
    const end = await this.#endings.end(victim, ending, { random, playedIn, stop });
    if (end === undefined) return 'none';
    await Promise.all(this.#workspaces.map((id) => served(victim.clientOf(id))));
    const outageMs = performance.now() - end.at;
    this.outagesMs.push(outageMs);
    assert.ok(outageMs <= this.#outageLimitMs, `workspaces were not served for ${Math.round(outageMs)} ms`);
    return end.how;
  }
}

/**
 * Resolves when notebooks of the workspace, wherever they are at home, accept a change and show it.
 * Rejects when a request is not answered at all.
 */
async function served({ notebooks }: Client): Promise<void> {
  const serveOne = async () => {
    const { id, updatedAt } = await notebooks.create();
    await notebooks.update(id, { expectedUpdatedAt: updatedAt, title: 'served' });
    return (await notebooks.get(id)).title;
  };
  const serve = () => Promise.all(Array.from({ length: SERVED_NOTEBOOKS }, serveOne));
  const again = eventually('the workspace is served', () => serve().catch(() => undefined), MAX_OUTAGE_MS);
  const isServed = await Promise.race([again.then(() => true), later(MAX_OUTAGE_MS, false, { ref: false })]);
  assert.ok(isServed, `a request is not answered within ${MAX_OUTAGE_MS} ms`);
}

/** Waits for `act`. A failure of `act` counts, unless the end of the round explains it. */
async function unlessExplained(signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (!signal.aborted) await Promise.race([later(MAX_NOTICE_MS), aborted(signal)]);
    if (!signal.aborted) throw error;
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
