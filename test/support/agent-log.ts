import type { Client } from '#src/contract/client/client.ts';
import type { FollowOptions } from '#src/contract/client/event-stream.ts';
import type { AgentSession } from '#src/contract/wire/agent.ts';
import type { AgentEvents, AgentStreamEvent } from '#src/contract/wire/events.ts';

type Matches = (event: AgentStreamEvent) => boolean;

/** Returns role and content of every entry of a conversation. */
export const said = ({ entries }: AgentSession) => entries.map(({ role, content }) => [role, content]);

/** Everything that one subscriber of an agent session has received, with functions that wait for more. */
export class AgentLog implements AsyncDisposable {
  readonly events: AgentStreamEvent[] = [];
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  readonly #abort = new AbortController();
  #waits: { readonly matches: Matches; resolve(): void; reject(error: Error): void }[] = [];

  private constructor(client: Client, sessionId: string, options: FollowOptions) {
    this.ended = this.#follow(client, sessionId, options);
    this.ended.catch(() => {}); // callers that wait get the error
  }

  /** Subscribes. Resolves when the current state has arrived. */
  static async open(client: Client, sessionId: string, options: FollowOptions = {}): Promise<AgentLog> {
    const log = new AgentLog(client, sessionId, options);
    await log.until(({ type }) => type === 'session.replayed' || type === 'session.closed');
    return log;
  }

  /** Returns the data of all events of a type, in order. */
  dataOf<T extends keyof AgentEvents>(type: T): AgentEvents[T][] {
    return this.events.flatMap((event) => (event.type === type ? [event.data as AgentEvents[T]] : []));
  }

  get types(): string[] {
    return this.events.map(({ type }) => type);
  }

  /** Returns all streamed text of one kind. */
  text(type: 'text-delta' | 'reasoning-delta' = 'text-delta'): string {
    return this.dataOf(type)
      .map(({ text }) => text)
      .join('');
  }

  /** Resolves with the first event that matches, whether it has arrived or will arrive. */
  async until(matches: Matches): Promise<AgentStreamEvent> {
    if (!this.events.some(matches)) {
      await new Promise<void>((resolve, reject) => this.#waits.push({ matches, resolve, reject }));
    }
    return this.events.find(matches)!;
  }

  /** Resolves when the streamed text contains `text`. */
  async heard(text: string): Promise<void> {
    await this.until((event) => event.type === 'text-delta' && this.text().includes(text));
  }

  /** Resolves when the run has ended. */
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

  /** Stops following. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort(new Error('the test has stopped following'));
    await this.ended.catch(() => {}); // callers that waited got the error
  }

  #fail(error: Error): void {
    for (const wait of this.#waits.splice(0)) wait.reject(error);
  }
}
