/**
 * The open notebook of one session: its document, the view of its cells, its event stream, its work in flight, and its
 * present kernel. It is made when a session is opened, or first used after a restart. It outlives the session's kernels
 * and ends when the session closes or goes to sleep. Outputs and console text pass through here, never through the
 * chart.
 */
import type { Work, WorkEnd } from '#machines/notebook-session.ts';
import type { Kernel } from '#src/confined/kernel/kernel.ts';
import type { BridgeDone, KernelMessage } from '#src/confined/kernel/messages.ts';
import type { SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { SessionStream } from '#src/events/session-stream.ts';
import { holdContent } from '#src/runs/output-content.ts';
import type { Envelope } from '#src/wire/events.ts';
import type { SessionMode, Startup } from '#src/wire/session.ts';
import { CellChanges } from './cell-changes.ts';
import { type NotebookEvent, registeredEvents, replayOf, variablesEvent } from './cell-events.ts';
import { savedAgain } from './cells-json.ts';
import { type CellConfig, configOf, type NotebookDocument, withConfig } from './document.ts';
import { applyTransaction } from './document-changes.ts';
import { PausableKernel } from './pausable-kernel.ts';
import { type SavedState, savedView } from './saved-view.ts';
import { type NotebookView, SCRATCH, type ViewCell } from './view.ts';
import { WorkSlot } from './work/work-slot.ts';

const MAX_APP_OPTIONS_CHARS = 64 * 1024;
/** How many ended runs are sent to a new subscriber. */
const MAX_ENDED_RUNS = 20;

export interface LiveNotebookOptions {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: SessionId;
  readonly saved: SavedState;
  readonly stream: SessionStream;
  /** Saves the document in this turn's commit and returns it with its new `updatedAt`. */
  readonly save: (document: NotebookDocument) => NotebookDocument;
  /** Resolves when the writes of this turn are committed. */
  readonly committed: () => Promise<void> | undefined;
}

export class LiveNotebook {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: SessionId;
  readonly view: NotebookView;
  readonly stream: SessionStream;
  readonly work = new WorkSlot();
  readonly #save: (document: NotebookDocument) => NotebookDocument;
  readonly #committed: () => Promise<void> | undefined;
  #document: NotebookDocument;
  readonly #kernel: PausableKernel;
  /** The mode of the session that has the present kernel. */
  #mode: SessionMode = 'edit';
  #revision = 0;
  #ends: readonly Envelope<'run-status'>[] = [];
  readonly #changes = new CellChanges((event) => this.#publish(event));
  #toldVariables = '[]';
  #usedAtMs = performance.now();
  #startup: Startup | null = null;
  #notes: readonly string[] = [];

  constructor(options: LiveNotebookOptions) {
    this.workspaceId = options.workspaceId;
    this.sessionId = options.sessionId;
    this.stream = options.stream;
    this.#save = options.save;
    this.#committed = options.committed;
    this.#document = options.saved.document;
    this.view = savedView(options.saved);
    this.#kernel = new PausableKernel(this.stream);
  }

  [Symbol.dispose](): void {
    this.#kernel[Symbol.dispose]();
  }

  get document(): NotebookDocument {
    return this.#document;
  }
  /** Counts the changes of the document since it was opened. */
  get revision(): number {
    return this.#revision;
  }
  get kernel(): Kernel | undefined {
    return this.#kernel.present;
  }

  /** Resolves when all writes so far are on disk; `undefined` when they are. */
  committed(): Promise<void> | undefined {
    return this.#committed();
  }

  /** The time of its last use, by the clock of `performance.now()`. */
  get usedAtMs(): number {
    return this.#usedAtMs;
  }

  touch(): void {
    this.#usedAtMs = performance.now();
  }

  /**
   * The step for which the start of the kernel waits; null when there is none to show. `tellStartup` also publishes it.
   */
  get startup(): Startup | null {
    return this.#startup;
  }
  tellStartup(startup: Startup | null): void {
    this.#startup = startup;
    if (startup !== null) this.#publish({ type: 'session.startup', data: startup });
  }

  /** The differences between the present kernel and the requirements of the notebook, such as another version of marimo. */
  get notes(): readonly string[] {
    return this.#notes;
  }
  note(difference: string): void {
    this.#notes = [...this.#notes, difference];
  }

  /** Takes a kernel that has begun to start. In the mode `run`, nothing that it says changes the saved notebook. */
  attachKernel(kernel: Kernel, mode: SessionMode): void {
    this.#mode = mode;
    this.#kernel.attach(kernel);
  }

  /** Called when the kernel is gone or is being stopped: the variables of the notebook are lost. */
  detachKernel(kernel: Kernel): void {
    if (this.#kernel.present !== kernel) return;
    this.#kernel.detach();
    this.#startup = null;
    this.#notes = [];
    this.work.leave();
    this.#rest();
    this.view.kernelLost();
    this.#tellVariables();
    this.#tellCells(this.view.cells);
  }

  /** Ends a piece of work, as the session's chart has decided. */
  endWork(work: Work, end: WorkEnd): void {
    this.#rest();
    this.work.end(work, end);
  }

  /** The kernel has nothing to do any more, and may be paused again. */
  #rest(): void {
    this.touch();
    this.#kernel.allowPause();
  }

  /** Stops pausing the kernel until its work ends: an interrupt does not reach a kernel that waits for its reader. */
  letKernelSpeak(): void {
    this.#kernel.preventPause();
  }

  /** Applies the kernel's messages to the view and publishes events. */
  apply(messages: readonly KernelMessage[]): void {
    for (const message of messages) {
      this.work.follow(message);
      this.#applyOne(message);
    }
    this.#changes.flush();
  }

  #applyOne(message: KernelMessage): void {
    switch (message.op) {
      case 'cell-op': {
        if (message.output !== null) holdContent(message.output);
        if (message.cellId === SCRATCH) this.view.applyScratchOp(message);
        else if (this.view.applyCellOp(message) === undefined) return;
        this.#changes.take(message, this.view.get(message.cellId));
        return;
      }
      case 'variables':
        this.view.setVariables(message.variables);
        this.#tellVariables();
        return;
      case 'notebook-document-transaction':
        if (message.source !== 'kernel' && this.#mode === 'edit') this.#edit(message.changes);
        return;
      case 'bridge-app-options':
        if (this.#mode === 'edit') this.#setAppOptions(message.options);
        return;
      case 'bridge-done':
        this.takeVerdicts(message);
        return;
      default:
    }
  }

  takeVerdicts(done: BridgeDone): void {
    this.#tellCells(this.view.applyVerdicts(done));
    if (this.#mode === 'edit' && this.#document.serialization.valid !== this.#isValid()) this.#saveCells();
  }

  /** Applies the code and settings of an execution request and saves them in this turn's commit. */
  override(changes: readonly { cellId: string; code?: string; config?: CellConfig }[]): void {
    for (const { cellId, code, config } of changes) {
      const cell = this.view.get(cellId);
      if (cell === undefined) throw new Error(`An override names the unknown cell ${cellId}.`);
      if (code !== undefined) this.view.setCode(cell, code);
      if (config !== undefined) cell.options = withConfig(cell.options, config);
    }
    this.#saveCells();
    const touched = changes.flatMap(({ cellId }) => this.view.get(cellId) ?? []);
    this.#publishRegistered(touched);
    this.#tellCells(touched);
  }

  #edit(changes: Parameters<typeof applyTransaction>[1]): void {
    const { registered, deleted, reordered } = applyTransaction(this.view, changes);
    if (registered.length === 0 && deleted.length === 0 && !reordered) return;
    this.#changes.flush();
    this.#saveCells();
    const after = this.#committed();
    for (const cellId of deleted) this.#changes.forget(cellId);
    if (deleted.length > 0) this.#publish({ type: 'cells-deleted', data: { cellIds: deleted } }, after);
    if (registered.length > 0 || reordered) this.#publishRegistered(registered);
    for (const cell of registered) this.#changes.changed(cell);
  }

  #setAppOptions(options: Readonly<Record<string, unknown>>): void {
    const { serialization } = this.#document;
    const app = { options: { ...serialization.app.options, ...options } };
    if (JSON.stringify(app).length > MAX_APP_OPTIONS_CHARS) return; // a kernel of ours never sends that much
    this.#replace({ ...this.#document, serialization: { ...serialization, app } });
  }

  #saveCells(): void {
    const before = new Map(this.#document.serialization.cells.map((cell) => [cell.cell_id, cell]));
    const cells = this.view.cells.map(({ id, code, options }) =>
      savedAgain({ cell_id: id, code, options }, before.get(id)),
    );
    const serialization = { ...this.#document.serialization, cells, valid: this.#isValid() };
    this.#replace({ ...this.#document, serialization });
  }

  /** Whether no cell has a syntax error that the kernel has reported; new code counts as valid until it is checked. */
  #isValid(): boolean {
    return this.view.cells.every((cell) => cell.structural.every((error) => error.type !== 'syntax'));
  }

  #replace(document: NotebookDocument): void {
    this.#document = this.#save(document);
    this.#revision++;
    this.#publish(
      { type: 'notebook.saved', data: { updatedAt: this.#document.updatedAt } },
      this.#committed(),
    );
  }

  #publishRegistered(cells: readonly ViewCell[]): void {
    for (const event of registeredEvents(cells, this.view.cells)) this.#publish(event, this.#committed());
  }

  /** Publishes the changes of cells. */
  #tellCells(cells: readonly ViewCell[]): void {
    for (const cell of cells) this.#changes.changed(cell);
    this.#changes.flush();
  }

  /** Publishes the variables unless they are equal to the last published ones. */
  #tellVariables(): void {
    const { variables } = this.view;
    const text = JSON.stringify(variables);
    if (text === this.#toldVariables) return;
    this.#toldVariables = text;
    this.#publish(variablesEvent(variables));
  }

  #publish(event: NotebookEvent, after?: Promise<void>): void {
    const { sessionId } = this;
    const { runId } = this.work;
    this.stream.publish(runId === null ? { ...event, sessionId } : { ...event, sessionId, runId }, after);
  }

  /** Publishes a run's status. The last ends are kept for later subscribers. */
  publishRunStatus(event: Envelope<'run-status'>, committed: Promise<void> | undefined): void {
    if (event.data.status !== 'running') this.#ends = [...this.#ends, event].slice(-MAX_ENDED_RUNS);
    this.stream.publish(event, committed);
  }

  /** Returns how the last runs ended, oldest first: one may have ended while a subscriber was away. */
  get ends(): readonly Envelope<'run-status'>[] {
    return this.#ends;
  }

  /** Returns the current state as events. */
  replay(): Envelope[] {
    return replayOf(this.view, this.sessionId);
  }

  /** Returns the cells as a kernel is started with them. */
  launchCells(): { cellId: string; code: string; config: CellConfig }[] {
    return this.view.cells.map(({ id, code, options }) => ({ cellId: id, code, config: configOf(options) }));
  }
}
