/** The runs of one user: reads, cancels, lists and deletes them, and requires of the answers what was acknowledged. */
import type { RunStatus } from '#src/contract/wire/run.ts';
import type { Span } from '#test/faults/history.ts';
import type { SeededRandom } from '#test/support/random.ts';
import type { Ledger } from '../judges/ledger.ts';
import { HANG } from '../kernel/cell-code.ts';
import type { World } from '../world/world.ts';
import { type Answer, isAnswer, type SimulatedClient } from './client.ts';
import type { Complaints } from './complaints.ts';
import type { Expectations } from './expectations.ts';
import type { Follower } from './follower.ts';

const RECENT_RUNS = 5;
/** How often a user who waits for the end of a run reads it. */
const MAX_WATCHES = 25;
const WATCH_PAUSE_MS = 3;

interface OwnRunsOptions {
  readonly world: World;
  readonly client: SimulatedClient;
  readonly random: SeededRandom;
  readonly complaints: Complaints;
  readonly ledger: Ledger;
  readonly expectations: Expectations;
  readonly user: {
    readonly notebook: string | undefined;
    /** The path of its session. */
    readonly session: string;
    readonly follower: Follower | undefined;
  };
  /** The cell that runs code which has to be cancelled. */
  readonly cellId: string;
}

export class OwnRuns {
  readonly acknowledged = new Set<string>();
  readonly #world: World;
  readonly #client: SimulatedClient;
  readonly #random: SeededRandom;
  readonly #complaints: Complaints;
  readonly #ledger: Ledger;
  readonly #expectations: Expectations;
  readonly #user: OwnRunsOptions['user'];
  readonly #cellId: string;
  #recent: string[] = [];

  constructor({ world, client, random, complaints, ledger, expectations, user, cellId }: OwnRunsOptions) {
    this.#world = world;
    this.#client = client;
    this.#random = random;
    this.#complaints = complaints;
    this.#ledger = ledger;
    this.#expectations = expectations;
    this.#user = user;
    this.#cellId = cellId;
  }

  /** The last run that was accepted and not deleted. */
  get last(): string | undefined {
    return this.#recent.at(-1);
  }

  /** `fromMs` is missing when an answer may repeat that of an earlier life. */
  accepted(given: unknown, fromMs?: number): string {
    const runId = String(given);
    if (fromMs !== undefined)
      this.#ledger.noteTaken(runId, this.#user.notebook!, fromMs, this.#client.server.life);
    this.acknowledged.add(runId);
    this.#recent = [...this.#recent.slice(1 - RECENT_RUNS), runId];
    return runId;
  }

  /** Reads a run again and again until it has ended, and soon afterwards sees its end in the stream. */
  async watch(runId: string): Promise<void> {
    for (let left = MAX_WATCHES; left > 0; left--) {
      const fromMs = this.#world.nowMs;
      const status = await this.read(runId);
      if (status !== 'running') {
        if (status !== undefined) this.#expectations.expectNews(runId, fromMs, this.#user.follower);
        return;
      }
      await this.#world.sleep(this.#random.next() * WATCH_PAUSE_MS);
    }
  }

  async cancelSoon(runId: string): Promise<void> {
    if (this.#random.is(0.5)) await this.#world.sleep(this.#random.next() * 3);
    await this.cancel(runId);
  }

  async cancel(runId: string | undefined): Promise<void> {
    if (runId === undefined) return;
    const fromMs = this.#world.nowMs;
    const { life } = this.#client.server;
    this.#ledger.noteCancel(runId);
    const answer = await this.#client.post(`/api/v3/runs/${runId}/cancel`, {});
    if (!isAnswer(answer)) return;
    this.#ledger.history.push({ kind: 'cancel', runId, from: fromMs, to: this.#world.nowMs });
    this.#complaints.requireSound('a cancellation', answer);
    if (answer.status !== 202) return;
    this.#ledger.noteCancelled(runId);
    this.#expectations.expectEnd(runId, life);
    if (this.#random.is(0.2)) await this.watch(runId);
  }

  async readOne(): Promise<void> {
    const all = [...this.acknowledged];
    if (all.length === 0) return;
    const runId = this.#random.is(0.5) ? (this.#recent.at(-1) ?? all[0]!) : this.#random.pick(all);
    await this.read(runId);
  }

  /** Resolves with the status of a run; undefined when it is not known. A run that is stale is cancelled. */
  async read(runId: string): Promise<RunStatus | undefined> {
    const fromMs = this.#world.nowMs;
    const answer = await this.#client.get(`/api/v3/runs/${runId}`);
    if (!isAnswer(answer) || !this.acknowledged.has(runId)) return undefined;
    if (answer.status !== 200) {
      this.#complaints.complain(`the acknowledged run ${runId}`, answer);
      return undefined;
    }
    const status = this.noteRead(runId, answer, { from: fromMs, to: this.#world.nowMs });
    if (answer.json.stale === true) await this.#endStale(runId);
    return status;
  }

  /** Notes an answer that has a run, and returns the status of the run. */
  noteRead(runId: string, { json }: Answer, span: Span): RunStatus {
    const status = json.status as RunStatus;
    this.#ledger.history.push({ kind: 'run-read', runId, status, isStale: json.stale === true, ...span });
    return status;
  }

  /** A stale run cannot be deleted before it is cancelled. */
  async #endStale(runId: string): Promise<void> {
    if (this.#random.is(0.2)) {
      const deletion = await this.#client.ask('DELETE', `/api/v3/runs/${runId}`);
      if (!isAnswer(deletion) || deletion.status < 300) {
        if (isAnswer(deletion) && !this.#ledger.isCancelled(runId))
          this.#complaints.complain(`the deletion of the stale run ${runId}`, deletion);
        this.acknowledged.delete(runId);
        this.#ledger.forget(runId);
      }
    }
    if (this.#random.is(0.5)) await this.cancel(runId);
  }

  /** Looks at the first page of the session's runs: at most one of them is running. */
  async list(): Promise<void> {
    const fromMs = this.#world.nowMs;
    const answer = await this.#client.get(`${this.#user.session}/executions`, 'limit=20');
    if (!isAnswer(answer) || answer.status !== 200) return;
    const items = answer.json.items as { id: string; status: RunStatus; stale?: boolean }[];
    const span = { from: fromMs, to: this.#world.nowMs };
    for (const { id: runId, status, stale } of items)
      this.#ledger.history.push({ kind: 'run-read', runId, status, isStale: stale === true, ...span });
    const running = items.filter(({ status, stale }) => status === 'running' && stale !== true);
    if (running.length > 1)
      this.#complaints.complain('the list of runs, of which several are running,', answer);
  }

  /** Deletes a run that has no key and whose end nobody waits for. */
  async deleteOne(): Promise<void> {
    const runId = this.#recent[0];
    if (runId === undefined || this.#ledger.history.some((entry) => isAbout(entry, runId))) return;
    this.acknowledged.delete(runId);
    this.#recent = this.#recent.filter((id) => id !== runId);
    const answer = await this.#client.ask('DELETE', `/api/v3/runs/${runId}`);
    if (isAnswer(answer) && answer.status === 409) this.acknowledged.add(runId);
    this.#complaints.requireSound('the deletion of a run', answer);
  }

  /** Deletes a run that does not end by itself, which is refused while it runs. */
  async deleteRunning(): Promise<void> {
    const body = { type: 'cells', cells: [{ cellId: this.#cellId, code: HANG }] };
    const answer = await this.#client.post(`${this.#user.session}/executions`, body);
    if (!isAnswer(answer) || answer.status !== 202) return;
    const runId = String(answer.json.runId);
    const path = `/api/v3/runs/${runId}`;
    const cancels = this.#random.is(0.3);
    this.#ledger.noteCancel(runId);
    if (cancels) void this.#client.post(`${path}/cancel`, {});
    const deletion = await this.#client.ask('DELETE', path);
    this.#complaints.requireSound('the deletion of a running run', deletion);
    if (isAnswer(deletion) && deletion.status < 300) this.#ledger.forget(runId);
    else if (!cancels) await this.#client.post(`${path}/cancel`, {});
  }
}

function isAbout(entry: object, runId: string): boolean {
  return (
    'answer' in entry && typeof entry.answer === 'object' && JSON.stringify(entry.answer).includes(runId)
  );
}
