/**
 * Shows a run as it happens: one block for each cell that runs, then the cells that did not run, then a summary. The screen
 * receives every event of the session's stream, and ignores events of other runs.
 */

import { ApiError } from '#src/contract/client/api-error.ts';
import { valueOfAsset } from '#src/contract/outputs/asset-value.ts';
import type { ShownValue } from '#src/contract/outputs/representation.ts';
import type { NotebookEvents, NotebookStreamEvent } from '#src/contract/wire/events.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Output } from '#src/contract/wire/output.ts';
import type { CellResult, Run } from '#src/contract/wire/run.ts';
import { shortDuration } from '../show/duration.ts';
import { bestText, type ShowOptions } from '../show/output.ts';
import type { Style } from '../style.ts';
import type { Terminal } from '../terminal.ts';
import { CellBlock, type CellEnd } from './cell-block.ts';
import { CellLabels } from './cell-labels.ts';
import { isServerAway } from './server-return.ts';

/** Loads outputs that are not in an event, and stores outputs that are not text. */
export interface OutputPorts {
  show(cellId: string, label: string): ShowOptions;
  /** Reads an asset of the run. */
  asset(assetId: string): Promise<{ bytes: Uint8Array }>;
  /** Reads a large output that an event names. */
  liveAsset(assetId: string): Promise<{ bytes: Uint8Array }>;
}

interface RunningCell {
  readonly block: CellBlock;
  readonly startedAt: number;
  output: Output | null;
}

const COUNTED: Readonly<Record<CellEnd, string>> = {
  success: 'done',
  error: 'failed',
  stopped: 'stopped',
  cancelled: 'did not run',
  interrupted: 'interrupted',
  disabled: 'disabled',
};

/** The output of one run. */
export class RunScreen {
  readonly #terminal: Terminal;
  readonly #style: Style;
  readonly #ports: OutputPorts;
  readonly #labels = new CellLabels();
  readonly #planned = new Set<string>();
  readonly #running = new Map<string, RunningCell>();
  readonly #shown = new Set<string>();
  /** Cells whose current state the stream is replaying; empty after the replay. */
  readonly #adopted = new Set<string>();

  constructor(terminal: Terminal, style: Style, ports: OutputPorts) {
    this.#terminal = terminal;
    this.#style = style;
    this.#ports = ports;
  }

  /** Takes the names of cells from the notebook: for a run that has ended, because no event brings the names. */
  nameCells({ serialization }: Notebook): void {
    this.#labels.add(
      serialization.cells.map(({ cell_id: cellId, code, options: { name } }) => ({
        cellId,
        code,
        name: typeof name === 'string' ? name : null,
      })),
    );
  }

  /** Returns the present step, for the status line. */
  get activity(): string {
    const [first] = this.#running;
    const count = `${this.#shown.size}/${this.#planned.size} cells`;
    if (first === undefined) return this.#planned.size === 0 ? 'waiting for the kernel' : count;
    const [cellId, { startedAt }] = first;
    const queued = this.#planned.size - this.#shown.size - this.#running.size;
    const waiting = queued > 0 ? `, ${queued} queued` : '';
    return `${count}  ${this.#labels.name(cellId)} running for ${shortDuration(performance.now() - startedAt)}${waiting}`;
  }

  /** Shows an event of the session; `runId` is `undefined` until the run is submitted. */
  async take(event: NotebookStreamEvent, runId: string | undefined): Promise<void> {
    if (event.type === 'cells-registered') this.#labels.add(event.data.cells);
    if (runId === undefined) return;
    if (event.runId === undefined) await this.#adopt(event);
    if (event.runId !== runId) return;
    if (event.type === 'console-output') this.#print(event.data);
    else if (event.type === 'cell-op') await this.#takeCell(event.data);
  }

  /** Shows the current state of a run that is followed from the middle, or after a reconnect. */
  async #adopt(event: NotebookStreamEvent): Promise<void> {
    if (event.type === 'session.replayed') this.#adopted.clear();
    else if (event.type === 'console-output') {
      if (this.#adopted.has(event.data.cellId)) this.#print(event.data);
    } else if (event.type === 'cell-op') {
      const { cellId, status, console } = event.data;
      if (status === 'queued') this.#planned.add(cellId);
      if (status === 'running' && !this.#running.has(cellId)) {
        this.#begin(cellId);
        this.#adopted.add(cellId);
      }
      if (!this.#adopted.has(cellId)) return;
      for (const entry of console ?? []) await this.#showEntry(cellId, entry);
    }
  }

  #print({ cellId, channel, text }: NotebookEvents['console-output']): void {
    this.#running.get(cellId)?.block.console({ channel, mimetype: 'text/plain', data: text });
  }

  async #takeCell({ cellId, status, output, console }: NotebookEvents['cell-op']): Promise<void> {
    if (status === 'queued') this.#planned.add(cellId);
    if (status === 'running') this.#begin(cellId);
    const cell = this.#running.get(cellId);
    if (cell === undefined) return;
    if (output !== undefined && output !== null) cell.output = output;
    for (const entry of console ?? []) await this.#showEntry(cellId, entry);
    if (status === undefined || status === 'running' || status === 'queued') return;
    const shown = await this.#live(cell.output);
    if (shown === undefined) return; // `finish` shows the cell, because the run has its output
    this.#running.delete(cellId);
    this.#shown.add(cellId);
    cell.block.end(endOf(cell.output), shown, performance.now() - cell.startedAt);
  }

  async #showEntry(cellId: string, entry: Output): Promise<void> {
    const shown = await this.#live(entry);
    if (shown != null) this.#running.get(cellId)?.block.console(shown);
  }

  /** Shows the cells of which no event was received, and the summary. */
  async finish(run: Run): Promise<void> {
    const results = (run.output?.parts ?? []).filter((part) => part.type === 'cell-result');
    for (const result of results) if (!this.#shown.has(result.cellId)) await this.#showResult(result);
    for (const part of run.output?.parts ?? []) {
      if (part.type === 'warning') this.#terminal.err(`${this.#style.yellow('warning')} ${part.message}\n`);
    }
    this.#terminal.out(`${summary(run, results, this.#style, this.#labels)}\n`);
  }

  async #showResult(result: CellResult): Promise<void> {
    const { cellId, status, outputs, durationMs } = result;
    const cell = this.#running.get(cellId);
    const block = cell?.block ?? this.#block(cellId);
    if (cell === undefined) {
      for (const entry of result.console) {
        const whole = await this.#stored(entry);
        if (whole !== null) block.console(whole);
      }
    }
    const values = await Promise.all(outputs.map((output) => this.#stored(output)));
    const present = values.filter((value) => value !== null);
    const best = bestText(present, this.#ports.show(cellId, this.#labels.name(cellId)));
    block.end(status, best === '' ? null : { mimetype: 'text/plain', data: best }, durationMs);
  }

  #begin(cellId: string): void {
    this.#planned.add(cellId);
    this.#running.set(cellId, { block: this.#block(cellId), startedAt: performance.now(), output: null });
  }

  #block(cellId: string): CellBlock {
    const [name, firstLine] = [this.#labels.name(cellId), this.#labels.firstLine(cellId)];
    // A cell that runs again because its state was set has no position among the planned cells.
    const isPlanned = this.#planned.has(cellId) && !this.#shown.has(cellId);
    const place = isPlanned ? `${this.#shown.size + 1}/${this.#planned.size}` : '';
    return new CellBlock(this.#terminal, this.#ports.show(cellId, name), { name, firstLine, place });
  }

  /** Returns an output of the run with its value. */
  #stored(output: Output): Promise<(ShownValue & { channel?: string }) | null> {
    return this.#whole(output, this.#ports.asset);
  }

  /**
   * Returns an output of an event with its value; undefined when the notebook already shows another output, or the server does
   * not answer. The finished run has the output as well.
   */
  async #live(output: Output | null): Promise<(ShownValue & { channel?: string }) | null | undefined> {
    try {
      return await this.#whole(output, this.#ports.liveAsset);
    } catch (error) {
      if ((error instanceof ApiError && error.status === 404) || isServerAway(error)) return undefined;
      throw error;
    }
  }

  async #whole(
    output: Output | null,
    read: OutputPorts['asset'],
  ): Promise<(ShownValue & { channel?: string }) | null> {
    if (output?.assetId === undefined) return output;
    const { assetId, ...rest } = output;
    const { bytes } = await read(assetId);
    return { ...rest, data: valueOfAsset(rest.mimetype, bytes) };
  }
}

/** Returns how a cell ended, judging by its output. */
function endOf(output: Output | null): CellEnd {
  if (output?.channel !== 'marimo-error') return 'success';
  const errors: readonly unknown[] = Array.isArray(output.data) ? output.data : [];
  const isInterrupted = errors.some(
    (error) => ({ type: undefined, ...Object(error) }).type === 'interruption',
  );
  return isInterrupted ? 'interrupted' : 'error';
}

function summary(
  { id, status, stale, error, startedAt, finishedAt }: Run,
  results: readonly CellResult[],
  style: Style,
  labels: CellLabels,
): string {
  const counts = new Map<CellEnd, number>();
  for (const result of results) counts.set(result.status, (counts.get(result.status) ?? 0) + 1);
  const cells = [...counts].map(([end, count]) => `${count} ${COUNTED[end]}`).join(', ');
  const time =
    startedAt === null || finishedAt === null
      ? ''
      : ` in ${shortDuration(Date.parse(finishedAt) - Date.parse(startedAt))}`;
  const paint = status === 'completed' ? style.green : status === 'failed' ? style.red : style.yellow;
  const where = (error?.cells ?? []).map((cell) => labels.name(cell)).join(', ');
  return [
    `${paint(stale === true ? 'lost when the server stopped' : status)}${time}${cells === '' ? '' : `: ${cells}`}  ${style.dim(id)}`,
    ...(error === null
      ? []
      : [`${style.red(error.code)} ${error.message}${where === '' ? '' : ` (in ${where})`}`]),
  ].join('\n');
}
