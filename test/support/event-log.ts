import type { Client } from '#src/contract/client/client.ts';
import type { FollowOptions } from '#src/contract/client/event-stream.ts';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import { bounded } from './processes.ts';

type Matches = (event: NotebookStreamEvent) => boolean;

interface Wait {
  readonly matches: Matches;
  resolve(event: NotebookStreamEvent): void;
  reject(error: Error): void;
}

/** Everything that one subscriber of a notebook session has received, with functions that wait for more. */
export class EventLog implements AsyncDisposable {
  readonly events: NotebookStreamEvent[] = [];
  readonly ids: string[] = [];
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  readonly #abort = new AbortController();
  #waits: Wait[] = [];

  constructor(client: Client, sessionId: string, options: FollowOptions = {}) {
    this.ended = this.#follow(client, sessionId, options);
    this.ended.catch(() => {}); // callers that wait get the error
  }

  /** Subscribes. Resolves when the current state has arrived. */
  static async open(client: Client, sessionId: string, options: FollowOptions = {}): Promise<EventLog> {
    const log = new EventLog(client, sessionId, options);
    await log.next((event) => event.type === 'session.replayed' || event.type === 'session.closed');
    return log;
  }

  get types(): string[] {
    return this.events.map(({ type }) => type);
  }

  /** Returns the data of all events of a type. */
  dataOf<T extends NotebookStreamEvent['type']>(type: T) {
    return this.events
      .filter((event): event is Extract<NotebookStreamEvent, { type: T }> => event.type === type)
      .map(({ data }) => data as Extract<NotebookStreamEvent, { type: T }>['data']);
  }

  /** Returns the streamed output of one cell. */
  printed(cellId: string): string {
    return this.dataOf('console-output')
      .filter((data) => data.cellId === cellId)
      .map(({ text }) => text)
      .join('');
  }

  /** Resolves with the first matching event, whether it has arrived or will arrive. Rejects when the stream ends first. */
  until(matches: Matches): Promise<NotebookStreamEvent> {
    const seen = this.events.find(matches);
    return seen === undefined ? this.next(matches) : Promise.resolve(seen);
  }

  /** Resolves with the next matching event. */
  next(matches: Matches): Promise<NotebookStreamEvent> {
    const event = new Promise<NotebookStreamEvent>((resolve, reject) =>
      this.#waits.push({ matches, resolve, reject }),
    );
    return bounded('an event', event, () => `The session sent: ${this.types.join(' ')}`);
  }

  /** Resolves when the session has, or has had, this status. */
  status(status: string): Promise<NotebookStreamEvent> {
    return this.until(
      ({ type, data }) =>
        (type === 'session.status' || type === 'session.snapshot') && data.status === status,
    );
  }

  async #follow(client: Client, sessionId: string, options: FollowOptions): Promise<void> {
    const { signal } = this.#abort;
    try {
      for await (const event of client.notebookSessions.follow(sessionId, {
        ...options,
        signal,
        onEventId: (id) => this.ids.push(id),
      })) {
        this.events.push(event);
        for (const wait of this.#waits.filter(({ matches }) => matches(event))) {
          this.#waits.splice(this.#waits.indexOf(wait), 1);
          wait.resolve(event);
        }
      }
      this.#fail(new Error(`the stream ended after: ${this.types.join(' ')}`));
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      if (!signal.aborted) throw error;
    }
  }

  #fail(error: Error): void {
    for (const wait of this.#waits.splice(0)) wait.reject(error);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort(new Error('the test has stopped following'));
    await this.ended.catch(() => {}); // callers that waited got the error
  }
}
