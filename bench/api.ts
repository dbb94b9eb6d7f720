/** The API calls that scenarios make while nothing is measured, and the bytes of requests that are measured. */
import { Feed } from './feed.ts';
import { decoded, type Endpoint, expected, requestBytes, Wire } from './wire.ts';

/** The code of each cell. The cells get the ids `c0`, `c1`, … */
export type Codes = readonly string[];

/** Texts that scenarios look for in the bytes of an event stream. */
export const MARK = {
  ready: '"status":"ready"',
  completed: '"status":"completed"',
  failed: '"status":"failed"',
  cancelled: '"status":"cancelled"',
  replayed: '"type":"session.replayed"',
} as const;

/** A session that is ready, and its environment. */
export interface OpenSession {
  readonly id: string;
  readonly environmentId: string;
}

/** Calls one server. */
export class Api {
  readonly endpoint: Endpoint;
  #wire: Promise<Wire> | undefined;

  constructor(endpoint: Endpoint) {
    this.endpoint = endpoint;
  }

  /** Returns the bytes of a request. */
  bytes(method: string, path: string, body?: unknown, headers = ''): Buffer {
    return requestBytes(this.endpoint, method, path, body, headers);
  }

  /** Opens a connection of its own for a scenario. */
  wire(): Promise<Wire> {
    return Wire.open(this.endpoint.port);
  }

  /** Returns the decoded body. Rejects unless the status is 2xx. Only one call may run at a time. */
  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    if (this.#wire === undefined || (await this.#wire).isClosed) this.#wire = this.wire();
    const answer = await (await this.#wire).send(this.bytes(method, path, body));
    return decoded<T>(expected(answer, 200, 299));
  }

  /** Creates a notebook and returns its id. */
  async notebook(
    codes: Codes,
    fields: { readonly datasourceSlugs?: readonly string[] } = {},
  ): Promise<string> {
    const cells = codes.map((code, i) => ({ cell_id: `c${i}`, code }));
    const body = { serialization: { cells }, ...fields };
    const { id } = await this.call<{ id: string }>('POST', '/api/v3/notebooks', body);
    return id;
  }

  /** Creates an environment and returns its id. */
  async environment(): Promise<string> {
    const { environmentId } = await this.call<{ environmentId: string }>(
      'POST',
      '/api/v3/execution-environments',
      {},
    );
    return environmentId;
  }

  /** Returns the bytes of the request that opens a session. */
  openBytes(notebookId: string, environmentId: string): Buffer {
    return this.bytes('POST', '/api/v3/notebook-sessions', { notebookId, environmentId });
  }

  /** Opens a session on a new notebook and returns it when it is ready. */
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

  /** Opens a conversation that is not bound to a notebook, and returns its id. */
  async conversation(model: string): Promise<string> {
    const environmentId = await this.environment();
    const body = { environmentId, config: { model } };
    const { sessionId } = await this.call<{ sessionId: string }>('POST', '/api/v3/agent-sessions', body);
    return sessionId;
  }

  /** Returns the bytes of the request that sends a prompt. */
  promptBytes(sessionId: string): Buffer {
    return this.bytes('POST', `/api/v3/agent-sessions/${sessionId}/runs`, { prompt: 'Speak.' });
  }

  /** Subscribes to a session. Resolves when its current state has arrived. */
  async follow(sessionId: string): Promise<Feed> {
    const { feed, seen } = await Feed.open(this.endpoint, sessionId, MARK.replayed);
    await seen[0];
    return feed;
  }

  /** Runs a cell. Resolves when the run has completed; it neither follows events nor polls meanwhile. */
  async run(sessionId: string, cellId: string): Promise<void> {
    const path = `/api/v3/notebook-sessions/${sessionId}/executions`;
    const body = { type: 'cells', cells: [{ cellId }] };
    const { runId } = await this.call<{ runId: string }>('POST', path, body);
    const { status } = await this.call<{ status: string }>('GET', `/api/v3/runs/${runId}?wait=60`);
    if (status !== 'completed') throw new Error(`The run has ${status}.`);
  }

  /** Closes a session. */
  async close(sessionId: string): Promise<void> {
    await this.call('DELETE', `/api/v3/notebook-sessions/${sessionId}`);
  }

  /** Returns the bytes of the request that runs these cells, or all cells when none are given. */
  executeBytes(sessionId: string, ...cellIds: string[]): Buffer {
    const cells = cellIds.map((cellId) => ({ cellId }));
    const body = cellIds.length === 0 ? { type: 'all' } : { type: 'cells', cells };
    return this.bytes('POST', `/api/v3/notebook-sessions/${sessionId}/executions`, body);
  }

  /** Returns the bytes of the request that replaces the code of a cell and runs it. */
  editBytes(sessionId: string, cellId: string, code: string): Buffer {
    const body = { type: 'cells', cells: [{ cellId, code }] };
    return this.bytes('POST', `/api/v3/notebook-sessions/${sessionId}/executions`, body);
  }

  /** Returns the bytes of a call of the code endpoint. */
  codeBytes(sessionId: string, code: string): Buffer {
    return this.bytes('POST', '/api/cee/kernel/execute', { code }, `service-session-id: ${sessionId}\r\n`);
  }
}
