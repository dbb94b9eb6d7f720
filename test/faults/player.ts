/**
 * One user with one notebook. It plays random operations on it through the client, keeps what the server acknowledged,
 * and holds the server to it in the next life. What was asked and not answered may have happened or not, but wholly, and
 * once: it is asked again under its idempotency key.
 */
import assert from 'node:assert/strict';
import { ApiError } from '#src/client/api-error.ts';
import type { Client } from '#src/client/client.ts';
import type { Run, RunStatus } from '#src/client/runs.ts';
import { Follower } from './follower.ts';
import type { Random } from './random.ts';

const SLOW = 'import time\ntime.sleep(1000)';
const DEADLY = 'import os\nos._exit(7)';
/** Refusals that a session gives while its kernel or its kernel host comes back. */
const PASSING = new Set([
  'session_not_ready',
  'session_busy',
  'session_failed',
  'unavailable',
  'run_finished',
]);

type SessionFact = 'open' | 'closed' | 'unsure';

export class Player {
  readonly #name: string;
  #count = 0;
  #notebookId = '';
  #environmentId = '';
  /** What the cell may hold: one code, or two while a change is not answered. */
  #codes = new Set(['0']);
  /** The newest state of the notebook that was acknowledged or shown. */
  #updatedAt = '';
  #session: SessionFact = 'closed';
  #wasOpened = false;
  /** Acknowledged runs in order, and the terminal record, once one was seen. */
  readonly #runs = new Map<string, Run | undefined>();
  readonly #ends = new Map<string, RunStatus>();
  #unanswered: { readonly key: string; readonly code: string } | undefined;
  #follower: Follower | undefined;
  /** Whether a life ended by violence since runs were last brought to an end. */
  #mayBeStale = false;
  operations = 0;
  #signal: AbortSignal | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** Plays until the signal aborts; throws what cannot be explained by it. */
  async play(client: Client, random: Random, signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    while (!signal.aborted) {
      try {
        await this.#step(client, random);
        this.operations++;
      } catch (error) {
        if (!(error instanceof ApiError && PASSING.has(error.code))) throw error;
        await this.#settle(client);
      }
    }
  }

  async #step(client: Client, random: Random): Promise<void> {
    if (this.#notebookId === '') return this.#create(client);
    if (this.#session === 'closed') {
      if (random.next() < 0.4) return this.#patch(client);
      return this.#open(client);
    }
    const dice = random.next();
    if (dice < 0.5) return this.#run(client, 'quick');
    if (dice < 0.75) return this.#cancelSlow(client, random);
    if (dice < 0.82) return this.#run(client, 'deadly');
    if (dice < 0.92) return this.#call(client);
    return this.#close(client);
  }

  async #create(client: Client): Promise<void> {
    const serialization = {
      app: { options: { app_title: this.#name } },
      cells: [{ cell_id: 'a', code: '0', options: {} }],
    };
    // Under one key in every life: however often it is asked, there is one notebook.
    const { id, updatedAt } = await client.notebooks.create(
      { serialization },
      { idempotencyKey: `${this.#name}-nb` },
    );
    const { environmentId } = await client.executionEnvironments.create({
      idempotencyKey: `${this.#name}-env`,
    });
    this.#notebookId = id;
    this.#environmentId = environmentId;
    this.#updatedAt = updatedAt;
  }

  async #patch(client: Client): Promise<void> {
    const code = this.#newCode('patched');
    this.#codes.add(code);
    const { updatedAt } = await client.notebooks.update(this.#notebookId, {
      expectedUpdatedAt: this.#updatedAt,
      serialization: {
        app: { options: { app_title: this.#name } },
        cells: [{ cell_id: 'a', code, options: {} }],
      },
    });
    this.#codes = new Set([code]);
    this.#updatedAt = updatedAt;
  }

  async #open(client: Client): Promise<void> {
    const [notebookId, environmentId] = [this.#notebookId, this.#environmentId];
    this.#session = 'unsure';
    await client.notebookSessions.open({ notebookId, environmentId });
    this.#session = 'open';
    this.#wasOpened = true;
    await this.#settle(client);
  }

  async #close(client: Client): Promise<void> {
    await this.#unfollow();
    this.#session = 'unsure';
    assert.equal((await client.notebookSessions.close(this.#notebookId)).status, 'closed');
    this.#session = 'closed';
    ({ updatedAt: this.#updatedAt } = await client.notebooks.get(this.#notebookId));
  }

  async #call(client: Client): Promise<void> {
    const headers = { 'service-session-id': this.#notebookId };
    await client.send({ method: 'POST', path: '/api/cee/kernel/execute', headers, body: { code: '1 + 1' } });
  }

  async #submit(client: Client, code: string): Promise<string> {
    const key = `${this.#name}-${++this.#count}`;
    const before = this.#codes;
    this.#codes = new Set([...before, code]);
    this.#unanswered = { key, code };
    try {
      return await this.#send(client, key, code);
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        this.#codes = before;
        this.#unanswered = undefined;
      }
      throw error;
    }
  }

  async #send(client: Client, idempotencyKey: string, code: string): Promise<string> {
    const request = { type: 'cells', cells: [{ cellId: 'a', code }] } as const;
    const { runId } = await client.executions.submit(this.#notebookId, request, { idempotencyKey });
    this.#codes = new Set([code]);
    this.#unanswered = undefined;
    this.#runs.set(runId, undefined);
    return runId;
  }

  async #run(client: Client, kind: 'quick' | 'deadly'): Promise<void> {
    const runId = await this.#submit(client, this.#newCode(kind === 'quick' ? 'print("ran")' : DEADLY));
    const run = await client.waitForRun(runId, { signal: this.#signal });
    this.#remember(run);
    if (kind === 'deadly') assert.equal(run.status, 'failed');
    if (run.status === 'failed' && kind === 'quick')
      assert.match(run.error?.code ?? '', /^(kernel_|server_stopped)/);
  }

  async #cancelSlow(client: Client, random: Random): Promise<void> {
    const runId = await this.#submit(client, this.#newCode(SLOW));
    const cancels = 1 + random.below(3);
    await Promise.all(Array.from({ length: cancels }, () => client.runs.cancel(runId)));
    const run = await client.waitForRun(runId, { signal: this.#signal });
    this.#remember(run);
    assert.notEqual(run.status, 'completed');
  }

  /** Waits until the session takes work again. */
  async #settle(client: Client): Promise<void> {
    const { status } = await client.notebookSessions.waitUntilReady(this.#notebookId, {
      signal: this.#signal,
    });
    if (status !== 'closed') this.#follower ??= new Follower(client, this.#notebookId);
  }

  #newCode(code: string): string {
    return `${code}\n# ${this.#name} ${++this.#count}`;
  }

  #remember(run: Run): void {
    if (run.status === 'running') return;
    this.#runs.set(run.id, run);
    this.#ends.set(run.id, run.status);
  }

  async #unfollow(): Promise<void> {
    const follower = this.#follower;
    this.#follower = undefined;
    if (follower === undefined) return;
    await follower.stop();
    for (const [runId, status] of follower.ends) {
      assert.equal(this.#ends.get(runId) ?? status, status, `the run ${runId} was told to end in two ways`);
      this.#ends.set(runId, status);
    }
    if (follower.savedAt > this.#updatedAt) this.#updatedAt = follower.savedAt;
  }

  /** At the end of a life: takes what subscribers were told into account. */
  rest(drained: boolean): Promise<void> {
    if (!drained) this.#mayBeStale = true;
    return this.#unfollow();
  }

  /** In the next life: everything that was acknowledged or told is as it was; what is left open is brought to an end. */
  async verify(client: Client, signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    if (this.#notebookId === '') return;
    await this.#verifyNotebook(client);
    const left = await this.#verifyRuns(client);
    await this.#verifySession(client);
    if (left !== undefined) await this.#endStale(client, left);
    this.#mayBeStale = false;
    await this.#askAgain(client);
  }

  async #verifyNotebook(client: Client): Promise<void> {
    const { serialization, updatedAt } = await client.notebooks.get(this.#notebookId);
    const code = serialization.cells[0]?.code ?? '';
    assert.ok(this.#codes.has(code), `the cell holds ${code} and not one of ${[...this.#codes].join(' | ')}`);
    assert.ok(updatedAt >= this.#updatedAt, `the notebook of ${this.#updatedAt} is that of ${updatedAt}`);
    if (this.#unanswered === undefined) this.#codes = new Set([code]);
    this.#updatedAt = updatedAt;
  }

  async #verifyRuns(client: Client): Promise<Run | undefined> {
    if (!this.#wasOpened) return undefined;
    const listed: Run[] = [];
    for await (const run of client.executions.each(this.#notebookId, { limit: 100 })) listed.push(run);
    const ids = listed.map(({ id }) => id);
    assert.deepEqual(ids, [...new Set(ids)].sort(), 'runs are listed once, oldest first');
    const known = ids.filter((id) => this.#runs.has(id));
    assert.deepEqual(known, [...this.#runs.keys()], 'every acknowledged run is there, in its order');
    const extra = listed.filter(({ id }) => !this.#runs.has(id));
    assert.ok(extra.length <= (this.#unanswered === undefined ? 0 : 1), 'no run that nobody asked for');
    for (const run of listed) {
      const seen = this.#runs.get(run.id);
      if (seen !== undefined) assert.deepEqual(run, seen, 'a run that was over is as it was');
      const told = this.#ends.get(run.id);
      if (told !== undefined) assert.equal(run.status, told, 'what subscribers were told is true');
      if (run.status === 'running') assert.deepEqual([run.stale, this.#mayBeStale], [true, true], run.id);
    }
    const stale = listed.filter(({ status }) => status === 'running');
    assert.ok(stale.length <= 1, 'at most one run was cut off');
    for (const run of listed) this.#remembered(run);
    return stale[0];
  }

  /** A run that was acknowledged and whose end was not seen keeps it from here on. */
  #remembered(run: Run): void {
    if (this.#runs.has(run.id)) this.#remember(run);
  }

  async #verifySession(client: Client): Promise<void> {
    const status = await client.notebookSessions.get(this.#notebookId).then(
      (record) => record.status,
      (error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return 'never opened' as const;
        throw error;
      },
    );
    const isOpen = status !== 'closed' && status !== 'never opened';
    if (this.#session !== 'unsure')
      assert.equal(isOpen, this.#session === 'open', `the session is ${status}`);
    const environment = await client.executionEnvironments.get(this.#environmentId);
    assert.equal(environment.notebookSessionId, isOpen ? this.#notebookId : null);
    this.#session = isOpen ? 'open' : 'closed';
    if (status !== 'never opened') this.#wasOpened = true;
    if (!isOpen) return;
    const ready = await client.notebookSessions.waitUntilReady(this.#notebookId, { signal: this.#signal });
    assert.deepEqual([ready.status, ready.currentRunId], ['ready', null]);
    this.#follower = new Follower(client, this.#notebookId);
  }

  async #endStale(client: Client, { id }: Run): Promise<void> {
    await client.runs.cancel(id);
    const run = await client.runs.get(id);
    assert.deepEqual([run.status, run.stale], ['cancelled', undefined]);
    if (this.#runs.has(id)) this.#remember(run);
  }

  /** The request without an answer, once more: there is one run of it, before or now. */
  async #askAgain(client: Client): Promise<void> {
    const asked = this.#unanswered;
    if (asked === undefined || this.#session !== 'open') return;
    const runId = await this.#send(client, asked.key, asked.code);
    const run = await client.runs.get(runId);
    if (run.status === 'running') {
      if (asked.code.startsWith(SLOW)) await client.runs.cancel(runId);
      this.#remember(await client.waitForRun(runId, { signal: this.#signal }));
    } else this.#remember(run);
    let count = 0;
    for await (const { input } of client.executions.each(this.#notebookId, { limit: 100 })) {
      if (input.type === 'cells' && input.cells[0]?.code === asked.code) count++;
    }
    assert.equal(count, 1, 'a request that was sent twice with one key is one run');
    await this.#settle(client);
  }
}
