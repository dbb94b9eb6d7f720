/**
 * The open notebook of one session: its document, the view of its cells, its event stream, its work in flight, and its present
 * kernel. The open notebook is made when a session is opened, or first used after a restart. It outlives the session's kernels
 * and ends when the session closes or goes to sleep. Outputs and console text pass through here, never through the chart.
 */

import type { Work, WorkEnd } from '#machines/notebook-session.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { SessionId, WorkspaceId } from '#src/base/ids.ts';
import { isShortJson } from '#src/base/json/json-write.ts';
import type { CellEdits, Kernel } from '#src/confined/processes/kernel/kernel.ts';
import type { BridgeDone, DocumentChange, KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import type { Envelope } from '#src/contract/wire/events.ts';
import type { Cell } from '#src/contract/wire/notebook.ts';
import type { SessionMode, Startup } from '#src/contract/wire/session.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { SessionStream } from '#src/runtime/events/session-stream.ts';
import { holdContent } from '#src/runtime/runs/output-content.ts';
import { savedAgain } from '../saved/cells-json.ts';
import { type CellConfig, configOf, type NotebookDocument, withConfig } from '../saved/document.ts';
import type { LiveChange, SavedChange } from '../saved/saved-notebooks.ts';
import { JoinedCellChanges } from './cell-changes.ts';
import { type NotebookEvent, registeredEvents, replayOf, variablesEvent } from './cell-events.ts';
import { type AppliedChanges, applyTransaction } from './document-changes.ts';
import { KernelAnswers } from './kernel-answers.ts';
import { offeredPackages } from './missing-packages.ts';
import { PausableKernel } from './pausable-kernel.ts';
import { PendingEdits } from './pending-edits.ts';
import { type SavedState, savedView } from './saved-view.ts';
import { UiValues } from './ui-values.ts';
import { type NotebookView, SCRATCH, type ViewCell } from './view.ts';
import { WorkSlot } from './work-slot.ts';

export const MAX_APP_OPTIONS_CHARS = 64 * 1024;
/** The limit for `isShortJson`, which counts at most eight characters for each character of the JSON. */
const MAX_COUNTED_APP_OPTIONS_CHARS = 8 * MAX_APP_OPTIONS_CHARS;
/** How many ended runs are sent to a new subscriber. */
const MAX_ENDED_RUNS = 20;

/** The author of changes of a document. */
export interface ChangeAuthor {
  readonly userId: string;
  /** Whether the agent of the notebook made the changes for the user. */
  readonly isAgent: boolean;
}

/** Follows an open notebook for its pages in browsers. A notebook without an open page has no follower, and makes no messages for one. */
export interface NotebookFollower {
  /** How many pages show the notebook now. */
  readonly pageCount: number;
  /** Takes a message of the kernel, which the view has applied. */
  message(message: KernelMessage): void;
  /** Takes values of UI elements that a program has set by the API. */
  valuesSet(values: Readonly<Record<string, unknown>>): void;
  /**
   * Takes changes of the document. `origin` is the page that made them; null when no page did. `author` is null for changes that the
   * kernel makes by itself.
   */
  changed(changes: readonly DocumentChange[], origin: object | null, author: ChangeAuthor | null): void;
  /** Takes cells whose state has changed other than by a message. */
  settled(cells: readonly ViewCell[]): void;
  /** The kernel takes commands from now on; with undefined, it is gone. */
  kernelChanged(kernel: Kernel | undefined, why?: string): void;
  /** The notebook leaves memory. */
  left(): void;
}

export interface LiveNotebookOptions {
  readonly session: ActorId;
  readonly saved: SavedState;
  readonly stream: SessionStream;
  readonly notebooks: {
    /** Saves the document in this turn's commit and returns it with its new `updatedAt`. */
    save(workspaceId: WorkspaceId, change: LiveChange): SavedChange;
  };
  readonly store: {
    /** Returns a promise that resolves when the writes of this turn are committed; undefined when they are committed already. */
    durable(): Promise<void> | undefined;
  };
}

export class LiveNotebook {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: SessionId;
  readonly view: NotebookView;
  readonly stream: SessionStream;
  readonly work = new WorkSlot();
  readonly uiValues = new UiValues();
  readonly answers = new KernelAnswers();
  follower: NotebookFollower | undefined;
  /** Called when there may be edits for the kernel; set by the driver of the kernel. */
  onEdits: () => void = () => {};
  readonly #edits = new PendingEdits();
  /** Whether there are edits that the kernel has not got. */
  hasEdits = false;
  readonly #notebooks: LiveNotebookOptions['notebooks'];
  readonly #store: LiveNotebookOptions['store'];
  #document: NotebookDocument;
  #versionSince: number | undefined;
  readonly #kernel: PausableKernel;
  /** The mode of the session that has the present kernel. */
  #mode: SessionMode = 'edit';
  #revision = 0;
  #ends: readonly Envelope<'run-status'>[] = [];
  readonly #changes = new JoinedCellChanges((event) => this.#publish(event));
  #toldVariables = '[]';
  #usedAtMs = performance.now();
  #startup: Startup | null = null;
  #missingPackages: readonly string[] = [];
  #notes: readonly string[] = [];

  constructor(options: LiveNotebookOptions) {
    this.workspaceId = options.session.workspaceId;
    this.sessionId = options.session.id as SessionId;
    this.stream = options.stream;
    this.#notebooks = options.notebooks;
    this.#store = options.store;
    this.#document = options.saved.document;
    this.view = savedView(options.saved);
    this.#kernel = new PausableKernel(this.stream);
  }

  [Symbol.dispose](): void {
    this.follower?.left();
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

  /** Returns a promise that resolves when all writes so far are on disk; `undefined` when they are on disk already. */
  committed(): Promise<void> | undefined {
    return this.#store.durable();
  }

  /** The time of the notebook's last use, by the clock of `performance.now()`. */
  get usedAtMs(): number {
    return this.#usedAtMs;
  }

  touch(): void {
    this.#usedAtMs = performance.now();
  }

  /** Whether a page shows the notebook now. A shown notebook counts as used. */
  get isShown(): boolean {
    return this.follower !== undefined && this.follower.pageCount > 0;
  }

  /**
   * The step that the start of the kernel waits for; null when there is no step to show. `tellStartup` sets and publishes the
   * step.
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

  /** The packages that imports of cells need, by the kernel's last report; empty once no cell fails any more. */
  get missingPackages(): readonly string[] {
    return this.view.cells.some(({ ended }) => ended === 'exception') ? this.#missingPackages : [];
  }

  /**
   * Takes a kernel that has begun to start. In the mode `run`, its reports do not change the saved
   * notebook.
   */
  attachKernel(kernel: Kernel, mode: SessionMode): void {
    this.#mode = mode;
    // The kernel starts with the present cells.
    this.takeEdits();
    for (const { id } of this.view.cells) this.view.codeDelivered(id);
    this.#kernel.attach(kernel);
  }

  /** The present kernel takes commands from now on. */
  kernelReady(kernel: Kernel): void {
    this.follower?.kernelChanged(kernel);
  }

  /**
   * Called when the kernel is gone or is being stopped: the variables of the notebook are lost. `why` is a sentence, given when
   * nobody stopped the kernel.
   */
  detachKernel(kernel: Kernel, why?: string): void {
    if (this.#kernel.present !== kernel) return;
    this.#kernel.detach();
    this.#startup = null;
    this.#notes = [];
    this.#missingPackages = [];
    this.work.leave();
    this.#rest();
    this.uiValues.clear();
    this.answers.lose();
    this.view.kernelLost();
    this.follower?.kernelChanged(undefined, why);
    this.#tellVariables();
    this.#tellCells(this.view.cells);
  }

  /** Ends a piece of work, as the session's chart has decided. */
  endWork(work: Work, end: WorkEnd): void {
    this.#rest();
    this.work.end(work, end);
    if (this.hasEdits) this.onEdits();
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
      if (message.op === 'completion-result' && this.answers.take(message)) continue;
      this.#applyOne(message);
      this.follower?.message(message);
    }
    this.#changes.flush();
  }

  #applyOne(message: KernelMessage): void {
    switch (message.op) {
      case 'cell-op': {
        if (message.output !== null) holdContent(message.output);
        if (message.cellId === SCRATCH) this.view.applyScratchOp(message);
        else if (this.view.applyCellOp(message) === undefined) return;
        if (message.status === 'running') this.uiValues.forgetCell(message.cellId);
        this.#changes.take(message, this.view.get(message.cellId));
        return;
      }
      case 'variables':
        this.view.setVariables(message.variables);
        this.#tellVariables();
        return;
      case 'notebook-document-transaction':
        if (message.source !== 'kernel' && this.#mode === 'edit') this.#editOfKernel(message.changes);
        return;
      case 'bridge-app-options':
        if (this.#mode === 'edit') this.setAppOptions(message.options);
        return;
      case 'missing-package-alert':
        this.#missingPackages = offeredPackages(message.packages);
        return;
      case 'bridge-widgets':
        this.view.setWidgets(message.widgets);
        return;
      case 'bridge-done':
        this.#takeVerdicts(message);
        return;
      default:
    }
  }

  #takeVerdicts(done: BridgeDone): void {
    const changed = this.view.applyVerdicts(done);
    this.#tellCells(changed);
    this.follower?.settled(changed);
    if (this.#mode === 'edit' && this.#document.serialization.valid !== this.view.isValid) this.#saveCells();
  }

  /** Applies the code and settings of a user's execution request and saves them in this turn's commit. */
  override(changes: readonly { cellId: string; code?: string; config?: CellConfig }[], by: string): void {
    for (const { cellId, code, config } of changes) {
      const cell = this.view.get(cellId);
      invariant(cell !== undefined, 'The cells of an accepted request exist.', cellId);
      if (code !== undefined) this.view.setCode(cell, code);
      if (config !== undefined) this.view.setOptions(cell, withConfig(cell.options, config));
    }
    this.#saveCells(by);
    const touched = changes.flatMap(({ cellId }) => this.view.get(cellId) ?? []);
    this.#publishRegistered(touched, this.#store.durable());
    this.#tellCells(touched);
    this.follower?.changed(touched.flatMap(changesTo), null, { userId: by, isAgent: false });
  }

  /**
   * Applies changes of a user and saves them in this turn's commit. The kernel gets these changes before it does anything else.
   * Returns the changes that took effect. Changes of missing cells, and changes for which the notebook has no room, have no
   * effect.
   */
  edit(changes: readonly DocumentChange[], by: string, origin: object | null): readonly DocumentChange[] {
    invariant(this.#mode === 'edit', 'Only a session in edit mode edits its notebook.');
    const effective = this.#edit(changes, origin, by).changes;
    if (this.#kernel.present !== undefined) {
      this.#edits.add(effective);
      this.hasEdits = true;
      this.onEdits();
    }
    return effective;
  }

  /**
   * Notes new values of UI elements when the kernel gets them from somebody other than a page. Returns a function: it gives elements that
   * have refused their new value the previous one again, unless another value was set in the meantime.
   */
  setUiValues(values: Readonly<Record<string, unknown>>): (refused: readonly string[]) => void {
    const before = new Map(Object.keys(values).map((id) => [id, this.uiValues.get(id)]));
    for (const [id, value] of Object.entries(values)) this.uiValues.set(id, value);
    this.follower?.valuesSet(values);
    return (refused) => {
      const present = refused.filter((id) => before.has(id) && this.uiValues.get(id) === values[id]);
      for (const id of present) this.#restoreUiValue(id, before.get(id));
    };
  }

  #restoreUiValue(elementId: string, value: unknown): void {
    if (value === undefined) this.uiValues.forget(elementId);
    else {
      this.uiValues.set(elementId, value);
      this.follower?.valuesSet({ [elementId]: value });
    }
  }

  /** Applies changes that the kernel has made itself. */
  #editOfKernel(changes: readonly DocumentChange[]): void {
    const effective = this.#edit(changes, null).changes;
    if (!this.hasEdits) return;
    this.#edits.overtakenBy(effective, (cellId) => settingsOf(this.view.get(cellId)?.options ?? {}));
    for (const change of effective)
      if (change.type === 'set-code') this.view.codeDelivered(change.cellId, true);
  }

  /** Notes that the kernel carries out these edits now: its further reports are about the edited cells. */
  editsGiven({ codes }: CellEdits): void {
    const corrected: ViewCell[] = [];
    for (const cellId in codes) {
      const cell = this.view.codeDelivered(cellId);
      if (cell !== undefined) corrected.push(cell);
    }
    if (corrected.length === 0) return;
    this.#tellCells(corrected);
    this.follower?.settled(corrected);
  }

  /** Notes that the kernel runs these cells with other codes than they have. The kernel gets the present codes with the next edits. */
  kernelRuns(codes: ReadonlyMap<string, string>): void {
    for (const [cellId, code] of codes) {
      const cell = this.view.get(cellId);
      if (cell === undefined || cell.code === code) continue;
      this.view.codeRuns(cell, code);
      this.#edits.add([{ type: 'set-code', cellId, code: cell.code }]);
      this.hasEdits = true;
    }
  }

  /** Returns, once, the edits that the kernel has not got yet; undefined when there are none. */
  takeEdits(): CellEdits | undefined {
    this.hasEdits = false;
    return this.#edits.take();
  }

  #edit(changes: readonly DocumentChange[], origin: object | null, by?: string): AppliedChanges {
    const applied = applyTransaction(this.view, changes, by !== undefined);
    const { registered, deleted, reordered } = applied;
    if (registered.length === 0 && deleted.length === 0 && !reordered) return applied;
    this.#changes.flush();
    this.#saveCells(by);
    this.follower?.changed(applied.changes, origin, this.#author(by));
    const after = this.#store.durable();
    for (const cellId of deleted) this.#changes.forget(cellId);
    if (deleted.length > 0) this.#publish({ type: 'cells-deleted', data: { cellIds: deleted } }, after);
    if (registered.length > 0 || reordered) this.#publishRegistered(registered, after);
    for (const cell of registered) this.#changes.changed(cell);
    if (by !== undefined) this.#changes.flush();
    return applied;
  }

  /**
   * Returns the author of changes: the given user, or otherwise the user whose work the kernel
   * does.
   */
  #author(by: string | undefined): ChangeAuthor | null {
    if (by !== undefined) return { userId: by, isAgent: false };
    const { current, runId } = this.work;
    if (current?.by === undefined) return null;
    // Code has a run only if an agent called it.
    return { userId: current.by, isAgent: current.kind === 'code' && runId !== null };
  }

  /**
   * Sets options of the notebook's app; null removes one. Returns false, and changes nothing, when all options together would take more
   * than `MAX_APP_OPTIONS_CHARS` as JSON.
   */
  setAppOptions(options: Readonly<Record<string, unknown>>, by?: string): boolean {
    if (!isShortJson(options, MAX_COUNTED_APP_OPTIONS_CHARS)) return false; // before all of its names are read
    const { serialization } = this.#document;
    const merged = Object.entries({ ...serialization.app.options, ...options });
    const app = { options: Object.fromEntries(merged.filter(([, value]) => value !== null)) };
    if (JSON.stringify(app).length > MAX_APP_OPTIONS_CHARS) return false; // a kernel of ours never sends that much
    this.#replace({ ...this.#document, serialization: { ...serialization, app } }, by);
    return true;
  }

  /**
   * Saves the cells in the name of the given user, or of the user whose work the kernel does. Cells that have not changed since
   * the last save stay the same objects, so that their JSON can be used again.
   */
  #saveCells(by?: string): void {
    const cells: Cell[] = [];
    for (const cell of this.view.cells) {
      const { id, code, options } = cell;
      let { saved } = cell;
      if (saved?.code !== code || saved.options !== options) {
        saved = savedAgain({ cell_id: id, code, options }, saved);
        cell.saved = saved;
      }
      cells.push(saved);
    }
    const serialization = { ...this.#document.serialization, cells, valid: this.view.isValid };
    this.#replace({ ...this.#document, serialization }, by);
  }

  #replace(after: NotebookDocument, by = this.work.current?.by ?? this.#document.updatedBy): void {
    const change = { before: this.#document, versionSince: this.#versionSince, after, by };
    const { document, versionSince } = this.#notebooks.save(this.workspaceId, change);
    this.#document = document;
    this.#versionSince = versionSince;
    const { updatedAt } = document;
    this.view.saved(updatedAt);
    this.#revision++;
    this.#publish({ type: 'notebook.saved', data: { updatedAt } }, this.#store.durable());
  }

  #publishRegistered(cells: readonly ViewCell[], after: Promise<void> | undefined): void {
    for (const event of registeredEvents(cells, this.view.order)) this.#publish(event, after);
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

  /**
   * Returns how the last runs ended, oldest first, because a run may have ended while a subscriber was away.
   */
  get ends(): readonly Envelope<'run-status'>[] {
    return this.#ends;
  }

  /** Returns the current state as events. */
  replay(): Envelope[] {
    return replayOf(this.view, this.sessionId);
  }

  /** Returns the cells in the form in which a kernel starts with them. */
  launchCells(): { cellId: string; code: string; config: CellConfig }[] {
    return this.view.cells.map(({ id, code, options }) => ({ cellId: id, code, config: configOf(options) }));
  }
}

/** Returns the changes after which a page shows the present state of a cell. */
function changesTo({ id: cellId, code, options }: ViewCell): DocumentChange[] {
  return [
    { type: 'set-code', cellId, code },
    { type: 'set-name', cellId, name: configOf(options).name },
    { type: 'set-config', cellId, config: settingsOf(options) },
  ];
}

/** Returns the settings of a cell that a kernel knows: all but the name. */
function settingsOf(options: ViewCell['options']): Omit<Required<CellConfig>, 'name'> {
  const { name: _, ...config } = configOf(options);
  return config;
}
