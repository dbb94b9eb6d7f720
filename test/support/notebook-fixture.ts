/** A notebook that is open with a kernel, and the operations that tests use. */
import assert from 'node:assert/strict';
import type { Client } from '#src/contract/client/client.ts';
import type { Cell, Notebook, NotebookFields } from '#src/contract/wire/notebook.ts';
import type { CellResult, ExecutionRequest, Run } from '#src/contract/wire/run.ts';
import type { NotebookSession } from '#src/contract/wire/session.ts';
import { EventLog } from './event-log.ts';
import type { TestServer } from './server-fixture.ts';

/** The code of each cell by its id, in order. */
export type Codes = Readonly<Record<string, string>>;

/** The options for creating and opening a notebook. */
export interface OpenOptions extends Omit<NotebookFields, 'serialization'> {
  readonly mode?: 'edit' | 'run';
  readonly arguments?: readonly string[];
  /** Options of cells by their ids. */
  readonly options?: Readonly<Record<string, Cell['options']>>;
}

/** An open notebook. */
export class OpenNotebook {
  readonly client: Client;
  readonly notebook: Notebook;
  readonly environmentId: string;
  /** The record of the session when it became ready. */
  readonly session: NotebookSession;

  constructor(client: Client, notebook: Notebook, environmentId: string, session: NotebookSession) {
    this.client = client;
    this.notebook = notebook;
    this.environmentId = environmentId;
    this.session = session;
  }

  get id(): string {
    return this.notebook.id;
  }

  /** Submits an execution. Returns the id of its run. */
  async submit(request: ExecutionRequest | readonly string[]): Promise<string> {
    const { runId } = await this.client.executions.submit(this.id, asRequest(request));
    return runId;
  }

  /** Submits an execution. Returns the run when it has ended. */
  async run(request: ExecutionRequest | readonly string[]): Promise<Run> {
    return this.client.waitForRun(await this.submit(request));
  }

  events(): Promise<EventLog> {
    return EventLog.open(this.client, this.id);
  }

  record(): Promise<NotebookSession> {
    return this.client.notebookSessions.get(this.id);
  }

  close(): Promise<NotebookSession> {
    return this.client.notebookSessions.close(this.id);
  }
}

/** Returns a request for the cells with these ids, or for all cells when there are none. */
function asRequest(request: ExecutionRequest | readonly string[]): ExecutionRequest {
  if (!isList(request)) return request;
  return request.length === 0
    ? { type: 'all' }
    : { type: 'cells', cells: request.map((cellId) => ({ cellId })) };
}

function isList(request: ExecutionRequest | readonly string[]): request is readonly string[] {
  return Array.isArray(request);
}

/** Returns cells of a serialization. */
export function cellsOf(codes: Codes, options: OpenOptions['options'] = {}): Cell[] {
  return Object.entries(codes).map(([cell_id, code]) => ({ cell_id, code, options: options[cell_id] ?? {} }));
}

/**
 * Returns code that writes a line at once, so that the line is one event. `print` writes the end of its line by itself, and marimo joins
 * only text that is written within some milliseconds. A busy machine may take longer.
 */
export function writing(line: string): string {
  return `_ = __import__("sys").stdout.write(${JSON.stringify(`${line}\n`)})`;
}

/** Creates a notebook and opens it in a new environment. Resolves when it is ready. */
export async function openNotebook(
  { client }: Pick<TestServer, 'client'>,
  codes: Codes,
  { mode = 'edit', arguments: words = [], options, ...fields }: OpenOptions = {},
): Promise<OpenNotebook> {
  const [notebook, { environmentId }] = await Promise.all([
    client.notebooks.create({ ...fields, serialization: { cells: cellsOf(codes, options) } }),
    client.executionEnvironments.create(),
  ]);
  await client.notebookSessions.open({ notebookId: notebook.id, environmentId, mode, arguments: words });
  const session = await client.notebookSessions.waitUntilReady(notebook.id);
  return new OpenNotebook(client, notebook, environmentId, session);
}

/** Returns the results of a run in the order of its output, one for each cell. */
export function results(run: Run): CellResult[] {
  return (run.output?.parts ?? []).filter((part): part is CellResult => part.type === 'cell-result');
}

/** Returns the status of each cell of a run. */
export function statuses(run: Run): Record<string, string> {
  return Object.fromEntries(results(run).map(({ cellId, status }) => [cellId, status]));
}

/** Returns the text that a cell printed. */
export function printed(result: CellResult): string {
  return result.console.map((entry) => ('data' in entry ? String(entry.data) : '')).join('');
}

/** Returns the cells of a session without their versions, which begin at the time of the last save. */
export function withoutVersions(cells: NotebookSession['cells']) {
  return cells.map(({ version, ...cell }) => {
    assert.ok(Number.isSafeInteger(version), `cell ${cell.cellId} has the version ${version}`);
    return cell;
  });
}
