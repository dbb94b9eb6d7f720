/** Follows one execution by the kernel's messages. At the end of the execution, reports how every touched cell ended. */

import type { Failure } from '#src/base/errors/errors.ts';
import { shortenText } from '#src/base/text/compact-text.ts';
import type {
  BridgeDone,
  BridgeWarning,
  CellError,
  CellStatus,
  Execution,
  KernelMessage,
} from '#src/confined/processes/kernel/messages.ts';
import { errorMessage } from '#src/contract/outputs/error-text.ts';
import type { CellResult, OutputPart, RunOutput, TerminalStatus } from '#src/contract/wire/run.ts';
import type { PrintedText } from '#src/runtime/runs/printed-text.ts';
import { OutputShelf, omittedTextWarning } from '#src/runtime/runs/run-output.ts';
import { labelOf, labelsOf } from '../open/cell-label.ts';
import { ConsoleTail } from '../open/console-tail.ts';
import type { NotebookView, ViewCell } from '../open/view.ts';
import { brokenOutputs } from './broken-cells.ts';

/** A run's failure. `cells` are the cells at fault. */
export interface RunFailure extends Failure {
  readonly cells?: readonly string[];
}

/** Returns a hint for people about an error of this type and text, or an empty string. */
export type ErrorHint = (type: string, text: string) => string;

interface Timing {
  readonly startedAt: number;
  durationMs: number | null;
  /** The printed text and the output of the cell when it began. Until marimo replaces them, they belong to an earlier run. */
  readonly earlier: Pick<ViewCell, 'console' | 'output'> & { readonly heldChars: number };
}

/** Returns the result of a cell for the kernel's status. */
export const RESULT_OF: Readonly<Record<NonNullable<CellStatus>, CellResult['status']>> = {
  success: 'success',
  exception: 'error',
  'marimo-error': 'error',
  stopped: 'stopped',
  cancelled: 'cancelled',
  interrupted: 'interrupted',
  disabled: 'disabled',
};

/** How many lost outputs are named. A cell can lose an output with each `mo.output.append`. */
const MAX_LOST = 100;
const NOTHING_PRINTED: Pick<ConsoleTail, 'entries' | 'omitted' | 'omittedMedia'> = new ConsoleTail();
/** How many missing packages are named, and the most characters of a name. No package has a longer name. */
const MAX_MISSING = 100;
const MAX_PACKAGE_NAME_CHARS = 200;
/** How many cells are followed: more than a notebook can have, because a run may delete cells and create others. */
const MAX_FOLLOWED = 20_000;
/** The most characters of an error's message. The output of its cell has the whole message. */
const MAX_MESSAGE_CHARS = 20_000;
const CUT = 'The notebook interrupted itself before all of its cells had run.';

export class RunRecorder {
  readonly #requested: readonly string[];
  readonly #stored: boolean;
  readonly #hint: ErrorHint;
  readonly #planned = new Set<string>();
  readonly #timings = new Map<string, Timing>();
  readonly #missing = new Set<string>();
  #hasMoreMissing = false;
  readonly #lost: BridgeWarning[] = [];
  #hasVerdicts = false;
  cancelRequested = false;
  /**
   * Whether the request skips cells with structural errors. These cells, and cells that need them, end with the reason.
   */
  skipsBroken = false;
  /** True until the kernel is asked to run cells. A run that ends before that has run no cells. */
  isPreparing = false;

  /** `hint`: a sentence about the limit that caused an error, or an empty string. */
  constructor(requested: readonly string[], stored: boolean, hint: ErrorHint = () => '') {
    this.#requested = requested;
    this.#stored = stored;
    this.#hint = hint;
  }

  /**
   * Records the contents of a message. Call this before the view applies the message. Messages about cells that the view does not
   * have are ignored.
   */
  follow(message: KernelMessage, view: NotebookView): void {
    if (message.op === 'execution') {
      const cell = view.get(message.cellId);
      if (cell !== undefined) this.#followExecution(message, cell);
    } else if (message.op === 'missing-package-alert') {
      for (const name of message.packages) this.#noteMissing(name);
    } else if (message.op === 'bridge-warning') {
      const isKnown = view.get(message.cellId) !== undefined;
      if (isKnown && this.#lost.length < MAX_LOST) this.#lost.push(message);
    }
  }

  #followExecution({ cellId, phase }: Execution, { console, output }: ViewCell): void {
    if (phase === 'planned' && this.#planned.size < MAX_FOLLOWED) this.#planned.add(cellId);
    const timing = this.#timings.get(cellId);
    if (phase === 'running' && (timing !== undefined || this.#timings.size < MAX_FOLLOWED)) {
      const earlier = { console, output, heldChars: console.heldChars };
      this.#timings.set(cellId, { startedAt: performance.now(), durationMs: null, earlier });
    } else if (phase === 'completed' && timing) {
      timing.durationMs = Math.round((performance.now() - timing.startedAt) * 100) / 100;
    }
  }

  #noteMissing(name: string): void {
    if (name.length > MAX_PACKAGE_NAME_CHARS || this.#missing.has(name)) return;
    if (this.#missing.size < MAX_MISSING) this.#missing.add(name);
    else this.#hasMoreMissing = true;
  }

  /** Returns the ids of the cells whose code began to run. */
  get ran(): ReadonlySet<string> {
    return new Set(this.#timings.keys());
  }

  /** Returns how the run ended. Called when the view has applied the kernel's verdicts. */
  verdict(done: BridgeDone, view: NotebookView): { status: TerminalStatus; failure: RunFailure | null } {
    this.#hasVerdicts = true;
    const touched = this.#touched(view).flatMap((id) => view.get(id) ?? []);
    const wasInterrupted = done.interrupted || touched.some((cell) => cell.ended === 'interrupted');
    if (this.cancelRequested && (wasInterrupted || this.isPreparing))
      return { status: 'cancelled', failure: null };
    if (done.error !== null && !wasInterrupted) {
      return { status: 'failed', failure: { code: 'kernel_command_failed', message: done.error } };
    }
    const failed = touched.filter((cell) => cell.structural.length > 0 || isFailure(cell.ended));
    const first = failed[0];
    if (first === undefined) {
      // Notebook code may raise KeyboardInterrupt where no cell fails from it, such as in a `__repr__`.
      const isCut = wasInterrupted && touched.some((cell) => cell.ended === 'cancelled');
      return isCut
        ? { status: 'failed', failure: { code: 'cell_failed', message: CUT } }
        : { status: 'completed', failure: null };
    }
    const cells = failed.map((cell) => cell.id);
    return {
      status: 'failed',
      failure: { code: 'cell_failed', message: describe(first, labelsOf(view), this.#hint), cells },
    };
  }

  /** Returns the text that a cell has printed so far in this run; undefined when the cell has not run. */
  printedBy(cellId: string, view: NotebookView): PrintedText | undefined {
    const [cell, timing] = [view.get(cellId), this.#timings.get(cellId)];
    if (cell === undefined || timing === undefined) return undefined;
    const printed = printedIn(cell, timing);
    const console = printed
      .entries()
      .flatMap(({ channel, mimetype, data }) => (channel === 'media' ? [] : { channel, mimetype, data }));
    const status = timing.durationMs === null ? 'interrupted' : shownEnd(cell);
    return { cellId, status, durationMs: timing.durationMs, console, omitted: printed.omitted };
  }

  /** Returns the parts to save, in the order in which the cells ran, and the assets that they name. */
  output(view: NotebookView, shelf = new OutputShelf()): { output: RunOutput; shelf: OutputShelf } {
    if (!this.#stored) return { output: { stored: false, parts: [] }, shelf };
    const results: OutputPart[] = [];
    const warnings: OutputPart[] = [];
    const brokenOutput = this.skipsBroken && !this.isPreparing ? brokenOutputs(view) : () => undefined;
    for (const id of this.#touched(view)) {
      const cell = view.get(id);
      if (cell === undefined) continue;
      const timing = this.#timings.get(id);
      const broken = brokenOutput(cell);
      const hasShown =
        timing !== undefined && (timing.durationMs !== null || cell.output !== timing.earlier.output);
      const shown = hasShown || cell.output?.channel === 'marimo-error' ? cell.output : null;
      const printed = timing === undefined ? NOTHING_PRINTED : printedIn(cell, timing);
      results.push({
        type: 'cell-result',
        cellId: id,
        status: broken === undefined ? this.#resultStatus(cell) : 'error',
        outputs: shelf.shelve(broken ?? shown),
        console: printed.entries().flatMap((entry) => shelf.shelveConsole(entry)),
        durationMs: timing?.durationMs ?? null,
      });
      if (printed.omittedMedia > 0) {
        const message = `The cell ${labelOf(cell)} showed ${printed.omittedMedia} more figures, which are not kept.`;
        warnings.push({ type: 'warning', code: 'figures_left_out', message, cellId: id });
      }
      if (printed.omitted > 0) {
        warnings.push(omittedTextWarning(id, labelOf(cell), printed.omitted));
      }
    }
    for (const { cellId, what, reason } of this.#lost) {
      const cell = view.get(cellId);
      if (cell === undefined) continue;
      const message = `${what} of the cell ${labelOf(cell)} is not shown, because ${reason}`;
      warnings.push({ type: 'warning', code: 'output_lost', message, cellId });
    }
    if (this.#missing.size > 0) {
      const message = `Not installed: ${[...this.#missing].join(', ')}${this.#hasMoreMissing ? ' and more' : ''}.`;
      warnings.push({ type: 'warning', code: 'missing_packages', message });
    }
    const parts = [...results, ...warnings, ...shelf.warningParts(), ...shelf.assetParts()];
    return { output: { stored: true, parts }, shelf };
  }

  /**
   * Returns the cells of this run: first the cells that ran, in their order, then the other requested cells. A cell with a
   * structural error belongs to the run only if it was requested, because the kernel plans such cells with every command.
   */
  #touched(view: NotebookView): string[] {
    const planned = [...this.#planned].filter((id) => view.get(id)?.structural.length === 0);
    return [...new Set([...this.#timings.keys(), ...planned, ...this.#requested])];
  }

  #resultStatus(cell: ViewCell): CellResult['status'] {
    if (this.isPreparing) return 'cancelled';
    if (cell.structural.length > 0) return 'error';
    if (this.#hasVerdicts && cell.ended !== null) return RESULT_OF[cell.ended];
    const timing = this.#timings.get(cell.id);
    if (timing === undefined) return 'cancelled';
    return this.#hasVerdicts || timing.durationMs === null ? 'interrupted' : shownEnd(cell);
  }
}

/** Returns the text that a cell has printed since it began. */
function printedIn({ console }: ViewCell, { earlier }: Timing): typeof NOTHING_PRINTED {
  const isEarlier = console === earlier.console && console.heldChars === earlier.heldChars;
  return isEarlier ? NOTHING_PRINTED : console;
}

/** Returns how a finished cell ended, judging by its output, because its kernel was lost before it gave verdicts. */
function shownEnd({ output }: ViewCell): 'success' | 'error' | 'interrupted' {
  if (output?.channel !== 'marimo-error') return 'success';
  return Array.isArray(output.data) && output.data.some(isInterruption) ? 'interrupted' : 'error';
}

function isInterruption(error: unknown): boolean {
  return (error as CellError | null)?.type === 'interruption';
}

function isFailure(status: CellStatus): boolean {
  return status === 'exception' || status === 'marimo-error' || status === 'interrupted';
}

/** Returns one line about why a cell failed, such as `ZeroDivisionError: division by zero`. */
function describe(cell: ViewCell, label: (cellId: string) => string, hint: ErrorHint): string {
  const shown =
    cell.output?.channel === 'marimo-error' && Array.isArray(cell.output.data) ? cell.output.data : [];
  const error: CellError | undefined = cell.structural[0] ?? (shown[0] as CellError | undefined);
  if (error === undefined) return `The cell ${labelOf(cell)} failed.`;
  if (cell.structural.length > 0 && error.msg === undefined)
    return `The cell ${labelOf(cell)} cannot run: ${shortenText(errorMessage(error, label), MAX_MESSAGE_CHARS)}.`;
  const kind = error.exception_type ?? error.type;
  if (error.msg === undefined)
    return `The cell ${labelOf(cell)} has an error: ${shortenText(kind, MAX_MESSAGE_CHARS)}.`;
  const [line, more] = [shortenText(`${kind}: ${error.msg}`, MAX_MESSAGE_CHARS), hint(kind, error.msg)];
  return more === '' ? line : `${line} (${more})`;
}
