import type { Client } from '#src/client/client.ts';
import type { FollowOptions } from '#src/client/event-stream.ts';
import type { AgentEvents, AgentStreamEvent } from '#src/client/events.ts';

type Matches = (event: AgentStreamEvent) => boolean;

/** Everything one subscriber of an agent session was told, and a way to wait for what it will be. */
export class AgentLog implements AsyncDisposable {
  readonly events: AgentStreamEvent[] = [];
  /** Resolves when the stream has ended by itself. */
  readonly ended: Promise<void>;
  readonly #abort = new AbortController();
  #waits: { readonly matches: Matches; resolve(): void; reject(error: Error): void }[] = [];

  private constructor(client: Client, sessionId: string, options: FollowOptions) {
    this.ended = this.#follow(client, sessionId, options);
    this.ended.catch(() => {}); // told to whoever waits
  }

  /** Resolves once the current state has been given. */
  static async open(client: Client, sessionId: string, options: FollowOptions = {}): Promise<AgentLog> {
    const log = new AgentLog(client, sessionId, options);
    await log.until(({ type }) => type === 'session.replayed' || type === 'session.closed');
    return log;
  }

  /** What was told by `types` and data, in order; ids and times left out. */
  dataOf<T extends keyof AgentEvents>(type: T): AgentEvents[T][] {
    return this.events.flatMap((event) => (event.type === type ? [event.data as AgentEvents[T]] : []));
  }

  get types(): string[] {
    return this.events.map(({ type }) => type);
  }

  /** All text of one kind that was streamed. */
  text(type: 'text-delta' | 'reasoning-delta' = 'text-delta'): string {
    return this.dataOf(type)
      .map(({ text }) => text)
      .join('');
  }

  /** Resolves with the first event that matches, of those that came already or will. */
  async until(matches: Matches): Promise<AgentStreamEvent> {
    if (!this.events.some(matches)) {
      await new Promise<void>((resolve, reject) => this.#waits.push({ matches, resolve, reject }));
    }
    return this.events.find(matches)!;
  }

  /** Resolves when so much text was streamed. */
  async heard(text: string): Promise<void> {
    await this.until((event) => event.type === 'text-delta' && this.text().includes(text));
  }

  /** Resolves when the run is over. */
  async over(runId: string): Promise<void> {
    await this.until(
      ({ type, data }) =>
        type === 'run-status' && 'runId' in data && data.runId === runId && data.status !== 'running',
    );
  }

  async #follow(client: Client, sessionId: string, options: FollowOptions): Promise<void> {
    try {
      const { signal } = this.#abort;
      for await (const event of client.agentSessions.follow(sessionId, { signal, ...options })) {
        this.events.push(event);
        for (const wait of this.#waits.filter(({ matches }) => matches(event))) {
          this.#waits.splice(this.#waits.indexOf(wait), 1);
          wait.resolve();
        }
      }
      this.#fail(new Error(`the stream ended after: ${this.types.join(' ')}`));
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
  }

  /** Follows no more. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort(new Error('the test has stopped following'));
    await this.ended.catch(() => {}); // its failure was told to whoever waited
  }

  #fail(error: Error): void {
    for (const wait of this.#waits.splice(0)) wait.reject(error);
  }
}
