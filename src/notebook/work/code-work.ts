import { shortenText } from '#src/base/text/compact-text.ts';
import { type TraceContext, traceparentOf } from '#src/base/tracing/trace-context.ts';
import type { CellError, CellOp, CellOutput } from '#src/confined/processes/kernel/messages.ts';
import { errorMessage } from '#src/contract/outputs/error-text.ts';
import type { EventData } from '#src/contract/wire/events.ts';
import type { CodeError, CodeResult } from '#src/contract/wire/session.ts';
import { unbundle } from '#src/runtime/runs/run-output.ts';
import type { Store } from '#storage/store.ts';
import { ConsoleTail } from '../open/console-tail.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { streamedResult } from '../open/streamed-outputs.ts';
import { SCRATCH } from '../open/view.ts';
import type { WorkPlan } from '../open/work-plan.ts';
import { configOf, isCellId } from '../saved/document.ts';
import { keepOutputs } from '../saved/saved-outputs.ts';

/**
 * How many characters of each channel are kept at its beginning and at its end. The event stream has the whole text.
 */
const MAX_PRINTED_END_CHARS = 512 * 1024;

/** The most errors of a result, and the most characters of each error. */
const MAX_ERRORS = 1000;
const MAX_ERROR_TYPE_CHARS = 200;
const MAX_ERROR_CHARS = 64 * 1024;
/** How many cells are followed: more than a notebook can have, because a block may delete cells and create others. */
const MAX_FOLLOWED = 20_000;

/** A call of code, by a client or by an agent. */
export interface CodeCall {
  readonly code: string;
  /** The user who makes the call, or whose agent makes it. */
  readonly by: string;
  /** Whether the names that the code defines are kept for later calls with `keep`. */
  readonly keep: boolean;
  /** How many seconds the code may run. No deadline when absent. */
  readonly timeoutS?: number | undefined;
  /** An id that the `execution-completed` event returns. */
  readonly toolCallId: string | undefined;
  /** The run of the agent that makes the call. Events of the call name this run. */
  readonly runId?: string;
  /** The trace of the request, or of the agent's tool call. */
  readonly trace: TraceContext | undefined;
}

export interface CodeWorkOptions {
  readonly id: string;
  readonly live: LiveNotebook;
  readonly resolve: (end: CodeEnd) => void;
}

/** The end of a call: its result, and the form of the result in the event. */
export interface CodeEnd {
  readonly result: CodeResult;
  readonly event: EventData<'execution-completed'>;
}

/**
 * Returns work that runs code in the kernel's scratchpad. The result is made from messages with the id of this command, because
 * threads and tasks of earlier commands may still print. The kernel sends earlier errors of cells again with every change of the
 * graph. Such errors count only if the code ran the cells.
 */
export function codeWork(
  store: Store,
  { runId, trace, code, keep }: CodeCall,
  { id, live, resolve }: CodeWorkOptions,
): WorkPlan {
  const stdout = new ConsoleTail(MAX_PRINTED_END_CHARS);
  const stderr = new ConsoleTail(MAX_PRINTED_END_CHARS);
  const media = new ConsoleTail();
  /** The cell of each figure. */
  const cellOf = new WeakMap<CellOutput, string>();
  const errors: CodeError[] = [];
  const known = new Map(live.view.cells.map((cell) => [cell.id, JSON.stringify(cell.structural)]));
  const ran = new Set<string>();
  let omittedErrors = 0;
  let output: CellOutput | null = null;

  const followCell = (op: CellOp): void => {
    if (op.runId !== null && op.runId !== id) return;
    for (const entry of op.console ?? []) {
      if (entry.channel === 'stdout') stdout.add(entry);
      else if (entry.channel === 'stderr') stderr.add(entry);
      else if (entry.channel === 'media') {
        media.add(entry);
        cellOf.set(entry, op.cellId);
      }
    }
    if (op.output === null) return;
    const isScratch = op.cellId === SCRATCH;
    if (op.output.channel === 'marimo-error') {
      if (known.get(op.cellId) === JSON.stringify(op.output.data)) return;
      // The errors of a cell that the block creates arrive before the cell itself.
      if (!isScratch && !isCellId(op.cellId)) return;
      for (const error of describeErrors(op.output, isScratch ? null : op.cellId)) {
        if (errors.length < MAX_ERRORS) errors.push(error);
        else omittedErrors++;
      }
    } else if (isScratch) output = op.output;
  };
  const traceparent = trace && traceparentOf(trace);
  // The code reads the present notebook. The kernel gets later edits when the code has ended.
  const document = documentOf(live);
  return {
    runId: runId ?? null,
    trace,
    steps: [
      (kernel) => {
        live.view.clearScratch();
        return kernel.scratchpad({ code, keep, runId: id, traceparent, ...document });
      },
    ],
    follow: (message) => {
      if (message.op === 'cell-op') followCell(message);
      else if (message.op === 'execution' && message.phase === 'running') {
        if (live.view.get(message.cellId) !== undefined && ran.size < MAX_FOLLOWED) ran.add(message.cellId);
      } else if (message.op === 'bridge-asked') for (const cellId of message.cells) known.delete(cellId);
    },
    conclude: (done) => {
      if (done.error !== null)
        errors.push({ type: 'kernel_command_failed', message: done.error, cellId: null });
      if (done.interrupted) return { status: 'cancelled', failure: null };
      return { status: errors.length > 0 ? 'failed' : 'completed', failure: null };
    },
    cancelRequested: () => undefined,
    ended: ({ failure }) => {
      if (ran.size > 0) keepOutputs(store, live, ran);
      if (omittedErrors > 0) {
        const message = `${omittedErrors} more errors were left out.`;
        errors.push({ type: 'errors_left_out', message, cellId: null });
      }
      if (failure !== null) errors.push({ type: failure.code, message: failure.message, cellId: null });
      const figures = media.media();
      const value = errors.length > 0 || isEmpty(output) ? null : output;
      const result = {
        success: errors.length === 0,
        output: shownValue(value),
        stdout: printed(stdout),
        stderr: printed(stderr),
        media: figures.flatMap(unbundle),
        errors,
      };
      const event = streamedResult(
        result,
        value === null ? undefined : [SCRATCH, value],
        figures.map((figure) => [cellOf.get(figure) ?? SCRATCH, figure]),
      );
      resolve({ result, event });
    },
  };
}

/** Returns the document in the form in which the code may read it. */
function documentOf(live: LiveNotebook) {
  const { cells } = live.view;
  return {
    revision: live.revision,
    appOptions: live.document.serialization.app.options,
    cells: cells.map(({ id: cellId, code, options, codeVersion: version }) => {
      const { name, ...config } = configOf(options);
      return { cellId, code, name, config, version };
    }),
    outputs: Object.fromEntries(
      cells.flatMap((cell) => (cell.output === null ? [] : [[cell.id, cell.output]])),
    ),
    consoles: Object.fromEntries(
      cells.flatMap((cell) => (cell.console.isEmpty ? [] : [[cell.id, cell.console.entries()]])),
    ),
  };
}

function describeErrors(output: CellOutput, cellId: string | null): CodeError[] {
  const list: readonly CellError[] = Array.isArray(output.data) ? output.data : [];
  // A cell after `mo.stop` is not meant to run, so its message is not an error.
  return list
    .filter((error) => error.type !== 'ancestor-stopped')
    .map((error) => ({
      type: shortenText(error.exception_type ?? error.type, MAX_ERROR_TYPE_CHARS),
      message: shortenText(errorMessage(error), MAX_ERROR_CHARS),
      cellId,
    }));
}

function isEmpty(output: CellOutput | null): boolean {
  return output?.mimetype === 'text/plain' && output.data === '';
}

function shownValue(output: CellOutput | null): CodeResult['output'] {
  if (output === null) return null;
  const { channel, timestamp, ...value } = output;
  return value;
}

function printed(console: ConsoleTail): string {
  const [head = '', tail = ''] = console.ends();
  if (console.omitted === 0) return head + tail;
  return `${head}\n… ${console.omitted} characters left out …\n${tail}`;
}
