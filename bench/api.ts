/** The few calls that scenarios make while nothing is measured, and the bytes of those that are. */
import { Feed } from './feed.ts';
import { decoded, type Endpoint, expected, requestBytes, Wire } from './wire.ts';

/** Codes of cells, whose ids are `c0`, `c1`, … */
export type Codes = readonly string[];

/** Marks in the bytes of an event stream. */
export const MARK = {
  ready: '"status":"ready"',
  completed: '"status":"completed"',
  failed: '"status":"failed"',
  cancelled: '"status":"cancelled"',
  replayed: '"type":"session.replayed"',
} as const;

export interface OpenSession {
  readonly id: string;
  readonly environmentId: string;
}

export class Api {
  readonly endpoint: Endpoint;
  #wire: Promise<Wire> | undefined;

  constructor(endpoint: Endpoint) {
    this.endpoint = endpoint;
  }

  bytes(method: string, path: string, body?: unknown, headers = ''): Buffer {
    return requestBytes(this.endpoint, method, path, body, headers);
  }

  wire(): Promise<Wire> {
    return Wire.open(this.endpoint.port);
  }

  /** The decoded body; rejects unless the answer is 2xx. One call at a time. */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    if (this.#wire === undefined || (await this.#wire).isClosed) this.#wire = this.wire();
    const answer = await (await this.#wire).send(this.bytes(method, path, body));
    return decoded<T>(expected(answer, 200, 299));
  }

  async notebook(
    codes: Codes,
    fields: { readonly datasourceSlugs?: readonly string[] } = {},
  ): Promise<string> {
    const cells = codes.map((code, i) => ({ cell_id: `c${i}`, code }));
    const body = { serialization: { cells }, ...fields };
    const { id } = await this.call<{ id: string }>('POST', '/api/v3/notebooks', body);
    return id;
  }

  async environment(): Promise<string> {
    const { environmentId } = await this.call<{ environmentId: string }>(
      'POST',
      '/api/v3/execution-environments',
      {},
    );
    return environmentId;
  }

  openBytes(notebookId: string, environmentId: string): Buffer {
    return this.bytes('POST', '/api/v3/notebook-sessions', { notebookId, environmentId });
  }

  /** A session on a new notebook; resolves when it is ready. */
  async session(
    codes: Codes,
    fields: { readonly datasourceSlugs?: readonly string[] } = {},
  ): Promise<OpenSession> {
    const id = await this.notebook(codes, fields);
    const environmentId = await this.environment();
    await this.call('POST', '/api/v3/notebook-sessions', { notebookId: id, environmentId });
    const { feed, seen } = await Feed.open(this.endpoint, id, MARK.ready);
    await seen[0];
    feed.close();
    return { id, environmentId };
  }

  /** A conversation that no notebook is bound to, with a model of its own. */
  async conversation(model: string): Promise<string> {
    const environmentId = await this.environment();
    const body = { environmentId, config: { model } };
    const { sessionId } = await this.call<{ sessionId: string }>('POST', '/api/v3/agent-sessions', body);
    return sessionId;
  }

  promptBytes(sessionId: string): Buffer {
    return this.bytes('POST', `/api/v3/agent-sessions/${sessionId}/runs`, { prompt: 'Speak.' });
  }

  /** Subscribes and waits until the current state has come. */
  async follow(sessionId: string): Promise<Feed> {
    const { feed, seen } = await Feed.open(this.endpoint, sessionId, MARK.replayed);
    await seen[0];
    return feed;
  }

  async close(sessionId: string): Promise<void> {
    await this.call('DELETE', `/api/v3/notebook-sessions/${sessionId}`);
  }

  executeBytes(sessionId: string, ...cellIds: string[]): Buffer {
    const cells = cellIds.map((cellId) => ({ cellId }));
    const body = cellIds.length === 0 ? { type: 'all' } : { type: 'cells', cells };
    return this.bytes('POST', `/api/v3/notebook-sessions/${sessionId}/executions`, body);
  }

  codeBytes(sessionId: string, code: string): Buffer {
    return this.bytes('POST', '/api/cee/kernel/execute', { code }, `service-session-id: ${sessionId}\r\n`);
  }
}
