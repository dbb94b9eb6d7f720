/** The place of a scenario: a server that nothing disturbs, its one client, and the facts that the scenario requires. */
import { Ledger } from '../judges/ledger.ts';
import type { SimulatedServer } from '../simulated-server.ts';
import { type Answer, type Outcome, SimulatedClient } from '../users/client.ts';
import { shownOf } from '../users/complaints.ts';
import { Follower } from '../users/follower.ts';
import type { World } from '../world/world.ts';
import { ENVIRONMENTS, SESSIONS } from './paths.ts';

const POLL_MS = 20;
/** Longer than anything takes that a scenario waits for. */
const PATIENCE_MS = 60_000;

/** How often each outcome came: a status, with the code of a refusal. */
export type Tally = Readonly<Record<string, number>>;

export class Stage {
  readonly world: World;
  readonly #client: SimulatedClient;
  readonly #ledger = new Ledger();
  readonly #followers: Follower[] = [];
  #keys = 0;

  constructor(world: World, server: SimulatedServer) {
    this.world = world;
    this.#client = new SimulatedClient(server);
  }

  /** Complains with `text` unless the fact holds. */
  require(isSo: boolean, text: string): void {
    if (!isSo) this.world.problem(text);
  }

  /** Requires that a tally has exactly these outcomes; an outcome that stands for any number is `undefined`. */
  requireTally(tally: Tally, expected: Readonly<Record<string, number | undefined>>, what: string): void {
    const isAllowed = (outcome: string, count: number) =>
      outcome in expected && (expected[outcome] === undefined || expected[outcome] === count);
    const isComplete = Object.entries(expected).every(
      ([outcome, count]) => count === undefined || tally[outcome] === count,
    );
    const isSound =
      isComplete && Object.entries(tally).every(([outcome, count]) => isAllowed(outcome, count));
    this.require(isSound, `${what} were answered with ${JSON.stringify(tally)}`);
  }

  ask(method: string, path: string, body?: unknown, key?: string): Promise<Outcome> {
    return this.#client.ask(method, path, { ...(body !== undefined && { body }), key });
  }

  /** Resolves with the answer of a request that has to succeed; throws otherwise. */
  async do(method: string, path: string, body?: unknown): Promise<Answer> {
    const outcome = await this.ask(method, path, body);
    if (typeof outcome === 'string' || outcome.status >= 300)
      throw new Error(`${method} ${path} was answered with ${shownOf(outcome)}`);
    return outcome;
  }

  /** Sends requests at once. Resolves with their answers and how often each came. */
  async crowd(
    count: number,
    send: (index: number) => Promise<Outcome>,
  ): Promise<{ readonly answers: readonly Answer[]; readonly tally: Tally }> {
    const outcomes = await Promise.all(Array.from({ length: count }, (_, index) => send(index)));
    const tally: Record<string, number> = {};
    for (const outcome of outcomes) {
      const name = typeof outcome === 'string' ? outcome : nameOf(outcome);
      tally[name] = (tally[name] ?? 0) + 1;
    }
    return { answers: outcomes.filter((outcome) => typeof outcome !== 'string'), tally };
  }

  /** Returns a key that no request has had yet. */
  newKey(): string {
    return `key-${++this.#keys}`;
  }

  /** Resolves with the id of a new notebook whose cells have these codes. */
  async notebook(codes: Readonly<Record<string, string>>): Promise<string> {
    const cells = Object.entries(codes).map(([cell_id, code]) => ({ cell_id, code }));
    return String((await this.do('POST', '/api/v3/notebooks', { serialization: { cells } })).json.id);
  }

  async environment(): Promise<string> {
    return String((await this.do('POST', ENVIRONMENTS, {})).json.environmentId);
  }

  /** Resolves with the id of a session of a new notebook, once it is ready. */
  async session(codes: Readonly<Record<string, string>>): Promise<string> {
    const notebookId = await this.notebook(codes);
    await this.do('POST', SESSIONS, { notebookId, environmentId: await this.environment() });
    await this.ready(notebookId);
    return notebookId;
  }

  /** Resolves once a session is ready. */
  async ready(sessionId: string): Promise<void> {
    await this.#until(`${SESSIONS}/${sessionId}`, ({ json }) => json.status === 'ready');
  }

  /** Follows the stream of a session, without disturbances. */
  follow(sessionId: string): void {
    const stream = { sessionId, path: `${SESSIONS}/${sessionId}/events` };
    const follower = new Follower(this.#client, this.#ledger, `follower of ${sessionId}`, stream);
    follower.rest();
    this.#followers.push(follower);
  }

  /** Resolves with the record of a run that has ended, once every follower has had time to learn of that. */
  async ended(runId: string): Promise<Answer['json']> {
    const { json } = await this.#until(`/api/v3/runs/${runId}`, (run) => run.json.status !== 'running');
    return json;
  }

  /** Requires that the follower of the run's session gets its end once. */
  async requireOneEnd(runId: string): Promise<void> {
    const ends = () =>
      this.#ledger.history.filter((entry) => entry.kind === 'end-seen' && entry.runId === runId).length;
    for (const untilMs = this.world.nowMs + PATIENCE_MS; ends() === 0 && this.world.nowMs < untilMs; )
      await this.world.sleep(POLL_MS);
    await this.world.sleep(POLL_MS * 10); // for a second one
    this.require(ends() === 1, `the run ${runId} ended ${ends()} times for its subscriber`);
  }

  /** Resolves with the ids of the runs of a session. */
  async runsOf(sessionId: string): Promise<string[]> {
    const { json } = await this.do('GET', `${SESSIONS}/${sessionId}/executions`);
    return (json.items as { id: string }[]).map(({ id }) => id);
  }

  /** Ends everything that the scenario follows, and judges what was seen. */
  end(): void {
    for (const follower of this.#followers) follower.stop();
    this.#ledger.judge([]);
  }

  async #until(path: string, isSo: (answer: Answer) => boolean): Promise<Answer> {
    for (const untilMs = this.world.nowMs + PATIENCE_MS; this.world.nowMs < untilMs; ) {
      const answer = await this.ask('GET', path);
      if (typeof answer === 'object' && isSo(answer)) return answer;
      await this.world.sleep(POLL_MS);
    }
    throw new Error(`${path} does not become what the scenario waits for`);
  }
}

function nameOf({ status, json }: Answer): string {
  return status < 400 ? String(status) : `${status} ${String(json.code)}`;
}
