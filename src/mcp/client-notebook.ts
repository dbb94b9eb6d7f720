/** An open notebook as the tools use it, over the API. */
import type {
  CellsResult,
  NotebookCell,
  NotebookOutput,
  OpenNotebook,
  PythonResult,
} from '#src/agent/tools/notebook-access.ts';
import { ApiError } from '#src/contract/client/api-error.ts';
import { valueOfAsset } from '#src/contract/outputs/asset-value.ts';
import { preferred } from '#src/contract/outputs/representation.ts';
import type { CellChange, ChangedCells } from '#src/contract/wire/cell-changes.ts';
import type { Output } from '#src/contract/wire/output.ts';
import type { NotebookRun } from '#src/contract/wire/run.ts';
import { CellStates } from './cell-states.ts';
import { Deadline } from './deadline.ts';
import type { McpCall } from './mcp-call.ts';
import type { NotebookLines } from './notebook-lines.ts';
import { eventsForTools } from './session-events.ts';
import { inOpenSession } from './sessions.ts';

/** The longest time that one request waits for the end of a run, in seconds. */
const MAX_WAIT_S = 60;
/** A larger picture of a run is not read and shown. */
const MAX_SHOWN_ASSET_BYTES = 768 * 1024;
const SHOWN_ASSETS = 10;
/** The type of the last error of code that was interrupted because its time was over. */
const TIMED_OUT = 'timed_out';
/** How long the opening of the notebook and the interruption of the code may take, in seconds. */
const MAX_OTHER_S = 120;

export class ClientNotebook implements OpenNotebook {
  readonly #call: McpCall;
  readonly #lines: NotebookLines;

  constructor(call: McpCall, lines: NotebookLines) {
    this.#call = call;
    this.#lines = lines;
  }

  /** Reads the ids of all cells from the first events of the session. */
  cellIds(): Promise<readonly string[]> {
    const { notebookId } = this.#call;
    return inOpenSession(this.#call, notebookId, async () => {
      for await (const event of eventsForTools(this.#call, notebookId))
        if (event.type === 'cells-registered') return event.data.order;
      throw brokenOff();
    });
  }

  /** Reads the current state of cells from the beginning of the session's event stream. */
  cells(cellIds?: readonly string[]): Promise<readonly NotebookCell[]> {
    const { notebookId } = this.#call;
    return inOpenSession(this.#call, notebookId, async () => {
      const state = new CellStates(cellIds);
      for await (const event of eventsForTools(this.#call, notebookId)) {
        if (event.type === 'session.replayed') return await this.#shown(state);
        state.take(event);
      }
      throw brokenOff();
    });
  }

  async #shown(state: CellStates): Promise<readonly NotebookCell[]> {
    const found: NotebookCell[] = [];
    for (const { cell, status, output: shown, console: entries } of state.cells()) {
      const { cellId, name, code, version } = cell;
      const console: NotebookOutput[] = [];
      for (const entry of entries) console.push(await this.#whole(entry));
      const output = shown === null ? null : await this.#whole(shown);
      found.push({ cellId, name: name ?? '', code, version, status, output, console });
    }
    return found;
  }

  /**
   * Returns the output of an event with its value. The value is missing when the notebook already shows another
   * output.
   */
  async #whole({ assetId, ...output }: Output): Promise<NotebookOutput> {
    if (assetId === undefined) return output;
    const { client, notebookId, signal } = this.#call;
    try {
      const { bytes } = await client.notebookSessions.asset(notebookId, assetId, { signal });
      return { ...output, data: valueOfAsset(output.mimetype, bytes) };
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return { ...output, data: '' };
      throw error;
    }
  }

  /** Changes cells: all changes, or none. It does not wait for other work on the notebook. Rejects with the refusals of the API. */
  change(changes: CellChange[]): Promise<ChangedCells> {
    const { client, notebookId, signal } = this.#call;
    return inOpenSession(this.#call, notebookId, () =>
      client.notebookSessions.change(notebookId, { changes }, { signal }),
    );
  }

  /**
   * Runs code; the names that it defines stay for later calls. The code is interrupted when the call is cancelled or
   * has taken too long. Waiting for other work on the notebook counts towards that time.
   */
  async runPython(code: string): Promise<PythonResult> {
    const { client, notebookId, callId, timeoutS } = this.#call;
    /**
     * The time limit of the call. The call first waits for other work on the notebook; the code may take the time that is left.
     */
    using waiting = new Deadline(this.#call.signal, timeoutS);
    let hasTurn = false;
    const work = async () => {
      hasTurn = true;
      let limitS = waiting.leftS;
      // When the time of the code is over, the server interrupts it and returns the text printed so far. This
      // deadline is for everything else.
      using deadline = new Deadline(this.#call.signal, timeoutS + MAX_OTHER_S);
      const { signal } = deadline;
      try {
        const call = { ...this.#call, signal, isWaitOver: () => waiting.isOver };
        const result = await inOpenSession(call, notebookId, () => {
          const options = {
            toolCallId: callId,
            keep: true,
            timeoutS: Math.max(1, Math.ceil(limitS)),
            signal,
          };
          limitS = waiting.leftS; // the next attempt has already waited for the session
          return client.code.execute(notebookId, code, options);
        });
        const isTimedOut = result.errors.at(-1)?.type === TIMED_OUT;
        return isTimedOut ? { ...result, isTimedOut, errors: [timeoutError(timeoutS)] } : result;
      } catch (error) {
        const isBusy = error instanceof ApiError && error.code === 'session_busy';
        if (isBusy && waiting.isOver) return timedOut(BUSY, timeoutS);
        if (!deadline.isOver) throw error;
        return timedOut(SLOW, timeoutS);
      }
    };
    try {
      return await this.#inLine(work, waiting.signal);
    } catch (error) {
      if (hasTurn || !waiting.isOver) throw error;
      return timedOut(BUSY, timeoutS);
    }
  }

  /**
   * Runs cells as a run of the notebook. When the call is cancelled, the run is cancelled too. When
   * the call has taken too long, the run continues.
   */
  runCells(cellIds: readonly string[]): Promise<CellsResult> {
    const { client, notebookId, timeoutS, signal } = this.#call;
    return this.#inLine(async () => {
      const request = { type: 'cells', cells: cellIds.map((cellId) => ({ cellId })) } as const;
      const { runId } = await inOpenSession(this.#call, notebookId, () =>
        client.executions.submit(notebookId, request, { signal }),
      );
      try {
        return await awaitRun(this.#call, runId, timeoutS);
      } catch (error) {
        // The call is over, so the request to cancel has no signal.
        if (signal.aborted) await client.runs.cancel(runId).catch(() => {});
        throw error;
      }
    });
  }

  #inLine<T>(work: () => Promise<T>, signal = this.#call.signal): Promise<T> {
    const { principal, notebookId } = this.#call;
    return this.#lines.pass(`${principal.workspaceId}/${notebookId}`, signal, work);
  }
}

/** The error of a stream of events that ended before it had the whole state. */
function brokenOff(): ApiError {
  const detail = 'The state of the notebook could not be read: its stream ended. Try again.';
  return new ApiError(503, new Headers(), { code: 'unavailable', detail });
}

/**
 * Resolves with the output of the cells of a run: with the whole output when the run has ended, or
 * with the output so far when the time is over.
 */
export async function awaitRun(call: McpCall, runId: string, seconds: number): Promise<CellsResult> {
  const { client, signal } = call;
  using deadline = new Deadline(signal, seconds);
  for (;;) {
    const wait = Math.max(0, Math.min(MAX_WAIT_S, Math.floor(deadline.leftS)));
    const run = await client.runs.get(runId, { wait, signal });
    const isRunning = run.status === 'running' && run.stale !== true;
    if (isRunning && deadline.leftS >= 1) continue;
    if (run.kind !== 'notebook') return { runId, failure: run.error, isRunning, cells: [] };
    return { runId, failure: failureOf(run), isRunning, cells: await cellsOf(call, run) };
  }
}

function failureOf({ status, error }: NotebookRun): CellsResult['failure'] {
  if (error !== null) return error;
  return status === 'cancelled' ? { code: 'cancelled', message: 'The run was cancelled.' } : null;
}

async function cellsOf(call: McpCall, { id, output }: NotebookRun): Promise<CellsResult['cells']> {
  const parts = output?.parts ?? [];
  const sizes = new Map(
    parts.flatMap((part) => (part.type === 'asset' ? [[part.assetId, part.bytes] as const] : [])),
  );
  let shown = 0;
  const read = async (value: Output): Promise<NotebookOutput> => {
    const { mimetype, assetId, text, table } = value;
    if (assetId === undefined) return value;
    const described = { ...(text === undefined ? {} : { text }), ...(table === undefined ? {} : { table }) };
    const isPicture = /^image\/(png|jpeg|gif|webp)$/.test(mimetype);
    if (isPicture && (sizes.get(assetId) ?? 0) <= MAX_SHOWN_ASSET_BYTES && shown++ < SHOWN_ASSETS) {
      const { bytes } = await call.client.runs.asset(id, assetId, { signal: call.signal });
      return { mimetype, data: `data:${mimetype};base64,${Buffer.from(bytes).toString('base64')}` };
    }
    call.links.push({ runId: id, assetId, mimetype });
    const note = `[${mimetype}, ${sizes.get(assetId) ?? '?'} bytes: ${assetUri(id, assetId)}]`;
    return { mimetype: 'text/plain', data: text === undefined ? note : `${text}\n${note}`, ...described };
  };
  const cells: CellsResult['cells'][number][] = [];
  for (const part of parts) {
    if (part.type !== 'cell-result') continue;
    const [first] = part.outputs.length > 1 ? [preferred(part.outputs, 'model')] : part.outputs;
    const console: NotebookOutput[] = [];
    for (const { channel = 'stdout', ...value } of part.console)
      console.push({ channel, ...(await read(value)) });
    cells.push({
      cellId: part.cellId,
      status: part.status,
      outputs: first === undefined ? [] : [await read(first)],
      console,
    });
  }
  return cells;
}

/** Returns the address of an asset as a resource of MCP. */
export function assetUri(runId: string, assetId: string): string {
  return `troupe://runs/${runId}/assets/${assetId}`;
}

const SLOW = 'The code has run for';
const BUSY = 'Other work on the notebook has not ended for';

function timeoutError(seconds: number, what = SLOW): PythonResult['errors'][number] {
  const end = what === SLOW ? ' and was interrupted' : ', and the code has not run';
  const message = `${what} ${seconds} s${end}. A longer time is given as timeoutS.`;
  return { type: TIMED_OUT, message, cellId: null };
}

function timedOut(what: string, seconds: number): PythonResult {
  return {
    success: false,
    isTimedOut: true,
    output: null,
    stdout: '',
    stderr: '',
    media: [],
    errors: [timeoutError(seconds, what)],
  };
}
