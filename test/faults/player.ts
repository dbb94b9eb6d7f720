/**
 * One user with one notebook. It performs random operations through the client, records what the server acknowledges,
 * and checks it after the next start. A request without a response has happened completely or not at all, and at most
 * once: it is sent again with its idempotency key.
 */

import assert from 'node:assert/strict';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Run } from '#src/contract/wire/run.ts';
import type { SeededRandom } from '#test/support/random.ts';
import { Follower } from './follower.ts';
import { Ledger } from './ledger.ts';

const SLOW = 'import time\ntime.sleep(1000)';
const DEADLY = 'import os\nos._exit(7)';
/** Refusals of a session while its kernel or its kernel host is being restored. */
const TEMPORARY = new Set([
  'session_not_ready',
  'session_busy',
  'session_failed',
  'unavailable',
  'run_finished',
]);

type SessionFact = 'open' | 'closed' | 'unsure';

/** One user. It must not know more about the server than its responses and events. */
export class Player {
  readonly #name: string;
  #count = 0;
  #notebookId = '';
  #environmentId = '';
  readonly #ledger = new Ledger();
  #session: SessionFact = 'closed';
  #wasOpened = false;
  #follower: Follower | undefined;
  operations = 0;
  #signal: AbortSignal | undefined;

  constructor(name: string) {
    this.#name = name;
  }

  /** Empty until there is a notebook. */
  get notebookId(): string {
    return this.#notebookId;
  }

  get wasOpened(): boolean {
    return this.#wasOpened;
  }

  /** Whether the player knows that its session is open. */
  get isOpen(): boolean {
    return this.#session === 'open';
  }

  /** Plays until the signal aborts. Throws every failure that the abort does not explain. */
  async play(client: Client, random: SeededRandom, signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    while (!signal.aborted) {
      try {
        await this.#step(client, random);
        this.operations++;
      } catch (error) {
        if (!(error instanceof ApiError && TEMPORARY.has(error.code))) throw error;
        await this.#waitUntilUsable(client);
      }
    }
  }

  async #step(client: Client, random: SeededRandom): Promise<void> {
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
    // The key is the same in every life, so there is only one notebook however often it is
    // requested.
    const { id, updatedAt } = await client.notebooks.create(
      { serialization },
      { idempotencyKey: `${this.#name}-nb` },
    );
    const { environmentId } = await client.executionEnvironments.create({
      idempotencyKey: `${this.#name}-env`,
    });
    this.#notebookId = id;
    this.#environmentId = environmentId;
    this.#ledger.updatedAt = updatedAt;
  }

  async #patch(client: Client): Promise<void> {
    const code = this.#newCode('patched');
    this.#ledger.codes.add(code);
    const { updatedAt } = await client.notebooks.update(this.#notebookId, {
      expectedUpdatedAt: this.#ledger.updatedAt,
      serialization: {
        app: { options: { app_title: this.#name } },
        cells: [{ cell_id: 'a', code, options: {} }],
      },
    });
    this.#ledger.codes = new Set([code]);
    this.#ledger.updatedAt = updatedAt;
  }

  async #open(client: Client): Promise<void> {
    const [notebookId, environmentId] = [this.#notebookId, this.#environmentId];
    this.#session = 'unsure';
    await client.notebookSessions.open({ notebookId, environmentId });
    this.#session = 'open';
    this.#wasOpened = true;
    await this.#waitUntilUsable(client);
  }

  async #close(client: Client): Promise<void> {
    await this.#unfollow();
    this.#session = 'unsure';
    assert.equal((await client.notebookSessions.close(this.#notebookId)).status, 'closed');
    this.#session = 'closed';
    ({ updatedAt: this.#ledger.updatedAt } = await client.notebooks.get(this.#notebookId));
  }

  async #call(client: Client): Promise<void> {
    const headers = { 'service-session-id': this.#notebookId };
    await client.send({ method: 'POST', path: '/api/cee/kernel/execute', headers, body: { code: '1 + 1' } });
  }

  async #submit(client: Client, code: string): Promise<string> {
    const key = `${this.#name}-${++this.#count}`;
    const before = this.#ledger.codes;
    this.#ledger.codes = new Set([...before, code]);
    this.#ledger.unanswered = { key, code };
    try {
      return await this.#send(client, key, code);
    } catch (error) {
      if (error instanceof ApiError && error.status === 409) {
        this.#ledger.codes = before;
        this.#ledger.unanswered = undefined;
      }
      throw error;
    }
  }

  async #send(client: Client, idempotencyKey: string, code: string): Promise<string> {
    const request = { type: 'cells', cells: [{ cellId: 'a', code }] } as const;
    const { runId } = await client.executions.submit(this.#notebookId, request, { idempotencyKey });
    this.#ledger.recordAcknowledged(runId, code);
    return runId;
  }

  async #run(client: Client, kind: 'quick' | 'deadly'): Promise<void> {
    const runId = await this.#submit(client, this.#newCode(kind === 'quick' ? 'print("ran")' : DEADLY));
    const run = await client.waitForRun(runId, { signal: this.#signal });
    this.#ledger.recordRun(run);
    if (kind === 'deadly') assert.equal(run.status, 'failed');
    if (run.status === 'failed' && kind === 'quick')
      assert.match(run.error?.code ?? '', /^(kernel_|server_stopped)/);
  }

  async #cancelSlow(client: Client, random: SeededRandom): Promise<void> {
    const runId = await this.#submit(client, this.#newCode(SLOW));
    const cancels = 1 + random.below(3);
    await Promise.all(Array.from({ length: cancels }, () => client.runs.cancel(runId)));
    const run = await client.waitForRun(runId, { signal: this.#signal });
    this.#ledger.recordRun(run);
    assert.notEqual(run.status, 'completed');
  }

  /** Waits until the session accepts work again. */
  async #waitUntilUsable(client: Client): Promise<void> {
    const { status } = await client.notebookSessions.waitUntilReady(this.#notebookId, {
      signal: this.#signal,
    });
    if (status !== 'closed') this.#follower ??= new Follower(client, this.#notebookId);
  }

  #newCode(code: string): string {
    return `${code}\n# ${this.#name} ${++this.#count}`;
  }

  async #unfollow(): Promise<void> {
    const follower = this.#follower;
    this.#follower = undefined;
    if (follower === undefined) return;
    await follower.stop();
    this.#ledger.recordEvents(follower);
  }

  /** Ends a life: records the events that subscribers received. */
  rest(drained: boolean): Promise<void> {
    if (!drained) this.#ledger.mayBeStale = true;
    return this.#unfollow();
  }

  /**
   * Checks, in the next life, that everything acknowledged or published is unchanged, and ends the work that was left running.
   */
  async verify(client: Client, signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    if (this.#notebookId === '') return;
    this.#ledger.checkNotebook(await client.notebooks.get(this.#notebookId));
    const left = this.#wasOpened ? this.#ledger.checkRuns(await this.#listRuns(client)) : undefined;
    await this.#verifySession(client);
    if (left !== undefined) await this.#endStale(client, left);
    this.#ledger.mayBeStale = false;
    await this.#askAgain(client);
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
    const wait = () => client.notebookSessions.waitUntilReady(this.#notebookId, { signal: this.#signal });
    let ready = await wait();
    // Expected in a life whose kernel host is killed.
    while (ready.status === 'restoring' && ready.error?.code === 'kernel_host_lost') ready = await wait();
    assert.deepEqual([ready.status, ready.currentRunId], ['ready', null], JSON.stringify(ready.error));
    this.#follower = new Follower(client, this.#notebookId);
  }

  async #endStale(client: Client, { id }: Run): Promise<void> {
    await client.runs.cancel(id);
    const run = await client.runs.get(id);
    assert.deepEqual([run.status, run.stale], ['cancelled', undefined]);
    this.#ledger.recordRun(run);
  }

  /** Sends the request without a response again, and checks that exactly one run exists for it. */
  async #askAgain(client: Client): Promise<void> {
    const asked = this.#ledger.unanswered;
    if (asked === undefined || this.#session !== 'open') return;
    const runId = await this.#patiently(client, () => this.#send(client, asked.key, asked.code));
    const run = await client.runs.get(runId);
    if (run.status === 'running') {
      if (asked.code.startsWith(SLOW)) await client.runs.cancel(runId);
      this.#ledger.recordRun(await client.waitForRun(runId, { signal: this.#signal }));
    } else this.#ledger.recordRun(run);
    const same = (await this.#listRuns(client)).filter(
      ({ input }) => 'type' in input && input.type === 'cells' && input.cells[0]?.code === asked.code,
    );
    assert.equal(same.length, 1, 'a request that was sent twice with one key is one run');
    await this.#waitUntilUsable(client);
  }

  /** Repeats `ask` while the session is being restored. */
  async #patiently<T>(client: Client, ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof ApiError && TEMPORARY.has(error.code))) throw error;
        await this.#waitUntilUsable(client);
      }
    }
  }

  async #listRuns(client: Client): Promise<Run[]> {
    const runs: Run[] = [];
    for await (const run of client.executions.each(this.#notebookId, { limit: 100 })) runs.push(run);
    return runs;
  }
}
