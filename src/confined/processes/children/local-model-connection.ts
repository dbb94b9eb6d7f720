/** The connection to a local model, which may run below another process of this server. */
import type { Dispatcher } from 'undici';
import type { LocalModelAddress, LocalModelProcess } from './local-model.ts';

export interface LocalModelConnection {
  readonly apiKey: string;
  /** An agent whose connections lead to the model, whatever host the URL names. */
  readonly dispatcher: Dispatcher;
}

export class ConnectedModel {
  readonly #file: Pick<LocalModelProcess, 'name' | 'lacks'>;
  readonly #start: () => Promise<LocalModelAddress>;
  #last: { readonly socketPath: string; readonly connection: LocalModelConnection } | undefined;

  /** `start` starts the model unless it runs, and resolves with its address. */
  constructor(file: Pick<LocalModelProcess, 'name' | 'lacks'>, start: () => Promise<LocalModelAddress>) {
    this.#file = file;
    this.#start = start;
  }

  get name(): string {
    return this.#file.name;
  }

  /** Returns which part is missing and how to get it; undefined when the model can be started. */
  lacks(): string | undefined {
    return this.#file.lacks();
  }

  /**
   * Resolves once the model is loaded. Rejects with one line that gives the reason when it cannot
   * be loaded; the next call tries again.
   */
  async connect(): Promise<LocalModelConnection> {
    const { apiKey, socketPath } = await this.#start();
    if (this.#last?.socketPath === socketPath) return this.#last.connection;
    const { Agent } = await import('undici');
    // Callers have time limits of their own.
    const dispatcher = new Agent({ connect: { socketPath }, bodyTimeout: 0, headersTimeout: 0 });
    this.#last = { socketPath, connection: { apiKey, dispatcher } };
    return this.#last.connection;
  }
}
