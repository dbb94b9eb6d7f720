/**
 * Clients that use a server and record its answers (`history.ts`). They do not know when the server
 * is disturbed. They repeat each request without an answer, with the same idempotency key.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Run } from '#src/contract/wire/run.ts';
import type { SeededRandom } from '#test/support/random.ts';
import { grouped } from './grouped.ts';
import type { History, RunRead, Span } from './history.ts';

/** Returns the client of the present server for a workspace; undefined while there is no server. */
export type LivingClient = (workspaceId: string) => Client | undefined;

export interface LoadOptions {
  readonly history: History;
  readonly clientOf: LivingClient;
  readonly workspaceIds: readonly string[];
  readonly random: SeededRandom;
  /** Aborts when no new operation may begin. */
  readonly signal: AbortSignal;
}

const SESSIONS = 6;
const FOLLOWERS = 2;
const REGISTERS = 4;
const WRITERS = 3;
const PAUSE_MS = 40;
const WAIT_S = 3;
/** How long one operation may go without a definite answer: a server that is started anew takes seconds. */
const MAX_PATIENCE_MS = 120_000;
/** The pause between the operations of one client. */
const THINK_MS = 30;
const TITLE = 'register';

/** The clients, and the notebooks that they use. */
export class RecordedLoad {
  readonly #options: LoadOptions;
  readonly #followers = new AbortController();
  readonly #sessions: { readonly workspaceId: string; readonly id: string }[] = [];
  readonly #registers: { readonly workspaceId: string; readonly id: string }[] = [];
  #count = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Creates notebooks and sessions. Resolves when every session is ready. */
  async open(): Promise<void> {
    const { workspaceIds, history } = this.#options;
    const of = (index: number) => workspaceIds[index % workspaceIds.length]!;
    for (let i = 0; i < REGISTERS; i++) {
      const workspaceId = of(i);
      const span = stopwatch();
      const { id, updatedAt } = await this.#client(workspaceId).notebooks.create({ title: TITLE });
      history.add({ kind: 'register-read', register: id, version: updatedAt, token: TITLE, ...span() });
      this.#registers.push({ workspaceId, id });
    }
    for (let i = 0; i < SESSIONS; i++) {
      const workspaceId = of(i);
      const client = this.#client(workspaceId);
      const serialization = { cells: [{ cell_id: 'a', code: '0', options: {} }] };
      const { id } = await client.notebooks.create({ serialization });
      const { environmentId } = await client.executionEnvironments.create();
      await client.notebookSessions.open({ notebookId: id, environmentId });
      await client.notebookSessions.waitUntilReady(id);
      this.#sessions.push({ workspaceId, id });
    }
  }

  /** Uses the server until the signal aborts. Rejects when a client sees an error that it must never see. */
  async play(): Promise<void> {
    const followers = this.#sessions.flatMap((session) =>
      Array.from({ length: FOLLOWERS }, (_, i) => this.#follow(session, `${session.id}#${i}`)),
    );
    const writers = this.#registers.flatMap((register) =>
      Array.from({ length: WRITERS }, () => this.#repeat((random) => this.#write(register, random))),
    );
    const players = this.#sessions.map((session) => this.#repeat((random) => this.#run(session, random)));
    await Promise.all([...writers, ...players]);
    this.#followers.abort(new Error('the load has ended'));
    await Promise.all(followers);
  }

  /**
   * Reads all data back. Call it when no operation is in progress any more. `dataDir` is the data
   * directory of the server.
   */
  async readBack(dataDir: string): Promise<void> {
    const { history, workspaceIds } = this.#options;
    for (const { workspaceId, id } of this.#registers) {
      const span = stopwatch();
      const notebook = await this.#client(workspaceId).notebooks.get(id);
      history.add({ ...readOf(id, notebook), ...span() });
    }
    for (const { workspaceId, id } of this.#sessions) {
      for await (const run of this.#client(workspaceId).executions.each(id, { limit: 100 })) {
        const { status, stale = false } = run;
        const token = tokenOf(run);
        history.add({ kind: 'final-run', session: id, runId: run.id, status, isStale: stale, token });
      }
    }
    const tokens = workspaceIds.flatMap((id) => tokensIn(join(dataDir, 'workspaces', id, 'files')));
    for (const [token, { length: times }] of grouped(tokens, (one) => one))
      history.add({ kind: 'executed', token, times });
  }

  async #repeat(step: (random: SeededRandom) => Promise<void>): Promise<void> {
    const { signal, random } = this.#options;
    const own = random.fork();
    while (!signal.aborted) {
      await step(own);
      await later(own.below(THINK_MS));
    }
  }

  #client(workspaceId: string): Client {
    const client = this.#options.clientOf(workspaceId);
    if (client === undefined) throw new ConnectionError('the server', new Error('it is not there'));
    return client;
  }

  /** Reads a register and replaces the value it has read. */
  async #write(
    { workspaceId, id }: { workspaceId: string; id: string },
    random: SeededRandom,
  ): Promise<void> {
    const { history } = this.#options;
    const read = stopwatch();
    const notebook = await patiently(() => this.#client(workspaceId).notebooks.get(id));
    // The span of all attempts contains the span of the successful attempt.
    history.add({ ...readOf(id, notebook), ...read() });
    if (random.is(0.3)) return;
    const token = `w${++this.#count}`;
    const expected = notebook.updatedAt;
    const span = stopwatch();
    const change = { expectedUpdatedAt: expected, title: token };
    const write = { kind: 'register-write', register: id, expected, token } as const;
    try {
      const { updatedAt: version } = await this.#client(workspaceId).notebooks.update(id, change);
      history.add({ ...write, answer: { version }, ...span() });
    } catch (error) {
      if (isNotSent(error)) return;
      const isConflict = error instanceof ApiError && error.code === 'stale_update';
      if (!isConflict && !isUnanswered(error)) throw error;
      history.add({
        ...write,
        answer: isConflict ? 'conflict' : 'unknown',
        ...span(),
        ...(isConflict ? {} : NEVER),
      });
    }
  }

  /** Runs a cell, and asks for its end in one of several ways. */
  async #run(session: { workspaceId: string; id: string }, random: SeededRandom): Promise<void> {
    const isSlow = random.is(0.15);
    const submitted = await this.#submit(session, isSlow, random.is(0.4) ? WAIT_S : 0);
    if (submitted === undefined) return;
    const { workspaceId } = session;
    if (isSlow) await this.#cancel(workspaceId, submitted);
    for (;;) {
      const run = await this.#read(workspaceId, submitted, random.is(0.7) ? WAIT_S : 0);
      if (run.status !== 'running') return;
      if (run.stale !== true) continue;
      await this.#read(workspaceId, submitted, 0);
      await this.#cancel(workspaceId, submitted);
    }
  }

  /** Resolves with the id of the run; undefined when the session did not take it. */
  async #submit(
    { workspaceId, id }: { workspaceId: string; id: string },
    isSlow: boolean,
    wait: number,
  ): Promise<string | undefined> {
    const token = `t${++this.#count}`;
    const key = `key-${token}`;
    const lines = [
      `with open("ran-${id}.txt", "a") as _file: _file.write("${token}\\n")`,
      ...(isSlow ? ['import time', 'time.sleep(30)'] : []),
    ];
    const request = { type: 'cells', cells: [{ cellId: 'a', code: lines.join('\n') }] } as const;
    const submission = { kind: 'submission', session: id, key, token } as const;
    let wasSent = false;
    const deadline = performance.now() + MAX_PATIENCE_MS;
    for (;;) {
      const span = stopwatch();
      try {
        const answer = await this.#client(workspaceId).executions.run(id, request, {
          idempotencyKey: key,
          wait,
        });
        const { runId } = answer;
        this.#options.history.add({ ...submission, answer: { runId }, ...span() });
        if (answer.status !== 'running') this.#note(answer, span());
        return runId;
      } catch (error) {
        if (error instanceof ApiError && error.status === 409) {
          // A key whose run exists is answered with the run, so this refusal shows that the first
          // attempt had no effect.
          if (!wasSent) return void (await later(PAUSE_MS * 2));
        } else if (!isUnanswered(error)) throw error;
        else if (!isNotSent(error)) {
          wasSent = true;
          this.#options.history.add({ ...submission, answer: 'unknown', ...span(), ...NEVER });
        }
        assert.ok(
          performance.now() < deadline,
          `the submission ${key} has no definite answer: ${String(error)}`,
        );
        await later(PAUSE_MS);
      }
    }
  }

  async #read(workspaceId: string, runId: string, wait: number): Promise<Run> {
    const deadline = performance.now() + MAX_PATIENCE_MS;
    for (;;) {
      const span = stopwatch();
      try {
        const run = await this.#client(workspaceId).runs.get(runId, wait === 0 ? {} : { wait });
        this.#note(run, span());
        return run;
      } catch (error) {
        if (!isUnanswered(error) || performance.now() > deadline) throw error;
        await later(PAUSE_MS);
      }
    }
  }

  #note({ id, status, stale = false }: Run, { from, to }: Span): void {
    const read: RunRead = { kind: 'run-read', runId: id, status, isStale: stale, from, to };
    this.#options.history.add(read);
  }

  async #cancel(workspaceId: string, runId: string): Promise<void> {
    const span = stopwatch();
    await patiently(() => this.#client(workspaceId).runs.cancel(runId)).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.code === 'run_finished')) throw error;
    });
    this.#options.history.add({ kind: 'cancel', runId, ...span() });
  }

  /** Follows a session through all lives of the server. */
  async #follow({ workspaceId, id }: { workspaceId: string; id: string }, follower: string): Promise<void> {
    const { signal } = this.#followers;
    while (!signal.aborted) {
      try {
        await this.#followOnce(workspaceId, id, follower);
      } catch (error) {
        if (!signal.aborted && !isUnanswered(error)) throw error;
        await later(PAUSE_MS);
      }
    }
  }

  async #followOnce(workspaceId: string, id: string, follower: string): Promise<void> {
    const { signal } = this.#followers;
    let eventId = '';
    const onEventId = (next: string) => {
      eventId = next;
    };
    const options = { signal, onEventId, giveUpAfterMs: 3_000 };
    for await (const event of this.#client(workspaceId).notebookSessions.follow(id, options)) {
      if (event.type !== 'run-status' || event.data.status === 'running') continue;
      const { runId, status } = event.data;
      const isLive = /^[0-9a-f]+-\d+$/.test(eventId);
      const at = performance.now();
      this.#options.history.add({ kind: 'end-seen', at, follower, runId, status, isLive });
    }
  }
}

/** The outcome of a request that has no answer. */
const NEVER = { to: Number.POSITIVE_INFINITY };

/** Returns a function that returns how much time has passed since this call. */
function stopwatch(): () => Span {
  const from = performance.now();
  return () => ({ from, to: performance.now() });
}

function readOf(register: string, { updatedAt, title }: Notebook) {
  return { kind: 'register-read', register, version: updatedAt, token: title ?? '' } as const;
}

function tokenOf({ input }: Run): string | undefined {
  const code = 'type' in input && input.type === 'cells' ? (input.cells[0]?.code ?? '') : '';
  return /_file\.write\("(t\d+)/.exec(code)?.[1];
}

function tokensIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith('ran-'))
    .flatMap((name) =>
      readFileSync(join(folder, name), 'utf8')
        .split('\n')
        .filter((line) => line !== ''),
    );
}

/** Returns whether it is unknown if the request was carried out, or the server asks to repeat it later. */
function isUnanswered(error: unknown): boolean {
  return (
    error instanceof ConnectionError ||
    (error instanceof ApiError && (error.status === 503 || error.status === 429))
  );
}

/** Whether the request did not reach a server. */
function isNotSent(error: unknown): boolean {
  return error instanceof ConnectionError && /ECONNREFUSED|it is not there/.test(error.message);
}

/** Repeats a request that changes nothing when it is repeated, until it is answered. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + MAX_PATIENCE_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isUnanswered(error) || performance.now() > deadline) throw error;
      await later(PAUSE_MS);
    }
  }
}
