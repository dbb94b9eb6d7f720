import type { NotebookStreamEvent } from '../wire/events.ts';
import { pathOf } from '../wire/paths.ts';
import type { NotebookRun } from '../wire/run.ts';
import { pause } from './abort.ts';
import { type Connection, DEFAULT_WAIT_S, type RequestOptions } from './connection.ts';
import { type FollowOptions, followEvents, GIVE_UP_AFTER_MS } from './event-stream.ts';
import { type RunOutcome, runOutcome } from './results.ts';
import { isTransient } from './retry.ts';
import { isOver, runs } from './runs.ts';

/** An event of a session, with the id after which a stream can continue. */
export type SessionEvent = NotebookStreamEvent & { readonly id: string };

/** The parts of a reply to a submission that a handle needs. */
export interface Submitted {
  readonly runId: string;
  /** The stream continues after this with the first event of the run. */
  readonly lastEventId?: string | undefined;
}

/** Yields the events of a notebook session, with their ids. */
export async function* sessionEvents(
  connection: Connection,
  sessionId: string,
  options: FollowOptions,
): AsyncGenerator<SessionEvent, void, undefined> {
  let id = '';
  const onEventId = (latest: string) => {
    id = latest;
    options.onEventId?.(latest);
  };
  const path = pathOf('followNotebookSession', { sessionId });
  for await (const event of followEvents<NotebookStreamEvent>(connection, path, { ...options, onEventId }))
    yield { ...event, id };
}

/** Pauses between attempts to wait for the end of a run. */
const PAUSE_MS = 250;

/**
 * A run of a session, from its submission on. A loop over it yields the run's events from the first to the end; each loop begins with
 * the first one again.
 */
export class RunHandle implements AsyncIterable<SessionEvent> {
  readonly #connection: Connection;
  readonly #runs: ReturnType<typeof runs>;
  readonly #sessionId: string;
  readonly #submitted: Promise<Submitted>;
  #outcome: Promise<RunOutcome> | undefined;

  constructor(connection: Connection, sessionId: string, submitted: Promise<Submitted>) {
    this.#connection = connection;
    this.#runs = runs(connection);
    this.#sessionId = sessionId;
    this.#submitted = submitted;
    submitted.catch(() => {}); // every use of the handle gets the rejection
  }

  /** Resolves with the run's id once the run is stored. */
  async id(): Promise<string> {
    return (await this.#submitted).runId;
  }

  /** Yields the events of the run, each once, across lost connections. */
  [Symbol.asyncIterator](): AsyncGenerator<SessionEvent, void, undefined> {
    return this.events();
  }

  /** Like a loop over the handle, with a signal that ends it. */
  async *events({ signal }: RequestOptions = {}): AsyncGenerator<SessionEvent, void, undefined> {
    const { runId, lastEventId } = await this.#submitted;
    /** Whether the stream tells the current state, because the server no longer has the events before it. */
    let tellsState = false;
    for await (const event of sessionEvents(this.#connection, this.#sessionId, { lastEventId, signal })) {
      if (event.type === 'session.snapshot') tellsState = true;
      if (event.type === 'session.closed') return;
      if (!tellsState) {
        yield event;
        if (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running')
          return;
      } else if (event.type === 'session.replayed') {
        if (isOver(await this.#runs.get(runId, { signal }))) return;
        tellsState = false;
      }
    }
  }

  /**
   * Resolves with the result once the run has ended, whatever its status; also when it is stale, which only `cancel` ends. It asks the
   * server again after lost connections, for as long as a minute without an answer.
   */
  result({ signal }: RequestOptions = {}): Promise<RunOutcome> {
    if (signal !== undefined) return this.#wait(signal);
    this.#outcome ??= this.#wait(undefined);
    return this.#outcome;
  }

  /** Cancels the run. Resolves when the cancellation has begun, or the run had ended; `result` tells when it has ended. */
  async cancel(options: RequestOptions = {}): Promise<void> {
    const { runId } = await this.#submitted;
    try {
      await this.#runs.cancel(runId, options);
    } catch (error) {
      if (Object(error).code !== 'run_finished') throw error;
    }
  }

  async #wait(signal: AbortSignal | undefined): Promise<RunOutcome> {
    return atEnd(this.#runs, await this.id(), signal, (run) =>
      runOutcome(run, async (assetId) => {
        const { bytes } = await this.#runs.asset(run.id, assetId, { signal });
        return bytes;
      }),
    );
  }
}

/**
 * Waits until the run has ended, or is stale, and resolves with what `read` makes of it. Lost connections are tried again for a minute
 * without an answer.
 */
export async function atEnd<T>(
  calls: Pick<ReturnType<typeof runs>, 'get'>,
  runId: string,
  signal: AbortSignal | undefined,
  read: (run: NotebookRun) => T,
): Promise<Awaited<T>> {
  for (let heardAt = performance.now(); ; ) {
    try {
      const run = await calls.get(runId, { wait: DEFAULT_WAIT_S, signal });
      heardAt = performance.now();
      if (isOver(run)) return await read(run as NotebookRun);
    } catch (error) {
      signal?.throwIfAborted();
      if (!isTransient(error) || performance.now() - heardAt > GIVE_UP_AFTER_MS) throw error;
      await pause(PAUSE_MS, signal);
    }
  }
}
