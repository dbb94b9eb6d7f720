import { unawaited } from '#src/base/async/unawaited.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { ElementCommand } from '#src/confined/processes/kernel/kernel.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { elementFilesIn } from './element-file-ids.ts';
import { type WaitingCommand, waitingCommand } from './waiting-command.ts';

/** The ways in which the session of a notebook works for its pages. */
export interface PageWorkPorts {
  /**
   * Submits a durable run. A cell with a code runs with this code, and the notebook keeps its own code. Throws or rejects with
   * the refusals of a session.
   */
  readonly submit: (
    userId: string,
    cells: 'all' | readonly { readonly cellId: string; readonly code?: string }[],
  ) => unknown;
  /**
   * Gives the kernel a command of a UI element, which is made when the kernel takes it. Resolves when the command was carried out;
   * rejects with the refusals of a session.
   */
  readonly element: (userId: string, command: () => ElementCommand) => Promise<void>;
  /** Returns a refusal in words, and logs an error that is not a refusal. */
  readonly describe: (error: unknown) => { readonly title: string; readonly description: string };
  /** Whether the session is closed. */
  readonly isClosed: () => boolean;
  /** Interrupts the present work of the session. */
  readonly interrupt: () => void;
  /** Removes files that pages have sent to elements, because the kernel will not get the values that name them. */
  readonly discardFiles: (ids: readonly string[]) => void;
}

/** The callbacks of the hub that the work needs. */
export interface PageWorkEvents {
  readonly shown: (cellIds: readonly string[], status: 'queued' | 'idle') => void;
  readonly refused: (notice: { readonly title: string; readonly description: string }) => void;
  /** Called when no work waits any more. */
  readonly idle: () => void;
}

/** A cell and its code. */
export interface CodeOfCell {
  readonly cellId: string;
  readonly code: string;
}

/** A page, its user, and codes of cells. */
export interface CodesOfPage {
  readonly caller: { readonly pageId: string; readonly userId: string };
  readonly cells: readonly CodeOfCell[];
}

interface RunJob {
  readonly kind: 'run';
  readonly userId: string;
  /** The cells with the codes that they had when the run was requested. */
  readonly cells: readonly CodeOfCell[];
  /** The cells that the notebook did not have then. */
  readonly lacking: Set<string>;
  readonly pageId: string;
  readonly chars: number;
  /** Until when the job waits for cells that the notebook does not have yet. */
  readonly lacksUntilMs: number;
}

/** Runs all cells of the notebook. */
interface AllJob {
  readonly kind: 'all';
  readonly userId: string;
  readonly chars: 0;
}

interface ElementJob {
  readonly kind: 'element';
  readonly userId: string;
  readonly waiting: WaitingCommand;
  chars: number;
}

type Job = RunJob | AllJob | ElementJob;

/** When a page runs a new cell, it may report up to 400 ms later that the cell was created. */
const MAX_LACKING_MS = 2000;
/** The most that may wait: pieces of work, and characters of their code and values. */
const MAX_JOBS = 1000;
const MAX_WAITING_CHARS = 32 * 2 ** 20;
const RETRY_MS = 250;
/** Work waits while the session answers with one of these. */
const WAITING: readonly string[] = ['session_busy', 'session_not_ready', 'unavailable'];

/**
 * The work that pages of a notebook wait for. It is done one piece at a time, in the order in which
 * it was requested.
 */
export class PageWork {
  readonly #live: LiveNotebook;
  readonly #ports: PageWorkPorts;
  readonly #events: PageWorkEvents;
  #jobs: Job[] = [];
  /** The characters of `#jobs`. */
  #waitingChars = 0;
  /** The job that is about to begin, or whose values the kernel is getting. */
  #present: Job | undefined;
  #isWorking = false;
  #isOver = false;
  #retry: NodeJS.Timeout | undefined;

  constructor(live: LiveNotebook, ports: PageWorkPorts, events: PageWorkEvents) {
    this.#live = live;
    this.#ports = ports;
    this.#events = events;
  }

  get isIdle(): boolean {
    return this.#jobs.length === 0 && !this.#isWorking;
  }

  /** Runs cells with these codes when it is their turn. */
  run({ caller: { pageId, userId }, cells }: CodesOfPage): void {
    const chars = cells.reduce((sum, { cellId, code }) => sum + cellId.length + code.length, 0);
    const lacking = new Set(
      cells.flatMap(({ cellId }) => (this.#live.view.get(cellId) === undefined ? cellId : [])),
    );
    const lacksUntilMs = performance.now() + MAX_LACKING_MS;
    this.#add({ kind: 'run', userId, pageId, cells, lacking, chars, lacksUntilMs });
    this.#events.shown(
      cells.map(({ cellId }) => cellId),
      'queued',
    );
  }

  /** Runs all cells when it is their turn. */
  runAll(userId: string): void {
    this.#add({ kind: 'all', userId, chars: 0 });
  }

  /**
   * Waiting values are replaced by newer values of the same element, and waiting changes of a widget by newer ones of the same
   * traits, as in marimo. A waiting check of a statement is replaced by the next one of the same user.
   */
  element(userId: string, command: ElementCommand): void {
    const last = this.#jobs.at(-1);
    const isSame = last?.kind === 'element' && last.userId === userId;
    const joining = isSame ? last.waiting.joining(command) : undefined;
    if (isSame && joining !== undefined) {
      this.#requireRoom(joining.chars);
      joining.apply();
      this.#discardFiles(joining.replaced, command);
      last.chars += joining.chars;
      this.#waitingChars += joining.chars;
    } else this.#add({ kind: 'element', userId, ...waitingCommand(command) });
  }

  /** Forgets waiting work, and interrupts the present work. */
  interrupt(): void {
    for (const job of this.#jobs.splice(0)) this.#dropped(job);
    this.#waitingChars = 0;
    this.#present = undefined;
    this.#ports.interrupt();
  }

  /**
   * Returns, once, the codes that waiting runs have brought for cells that the notebook has only now. The page reports such a
   * cell after it asked for the run.
   */
  takeCodesOfNewCells(): CodesOfPage[] {
    return this.#jobs.flatMap((job) => {
      if (job.kind !== 'run' || job.lacking.size === 0) return [];
      const cells = job.cells.filter(
        ({ cellId }) => job.lacking.has(cellId) && this.#live.view.get(cellId) !== undefined,
      );
      for (const { cellId } of cells) job.lacking.delete(cellId);
      return cells.length === 0 ? [] : { caller: { pageId: job.pageId, userId: job.userId }, cells };
    });
  }

  /** Called when the session may accept work again. */
  wake(): void {
    unawaited(this.#work(), 'page-work: the work of a page');
  }

  close(): void {
    this.#isOver = true;
    this.#jobs = [];
    clearTimeout(this.#retry);
  }

  #add(job: Job): void {
    this.#requireRoom(job.chars);
    this.#jobs.push(job);
    this.#waitingChars += job.chars;
    setImmediate(() => unawaited(this.#work(), 'page-work: the work of a page'));
  }

  /** Throws `quota_exceeded` when there is no room for one more job of so many characters. */
  #requireRoom(chars: number): void {
    if (this.#jobs.length < MAX_JOBS && this.#waitingChars + chars <= MAX_WAITING_CHARS) return;
    throw new AppError('quota_exceeded', 'Too many requests of pages of this notebook wait already.', {
      headers: { 'retry-after': '5' },
    });
  }

  #dropped(job: Job): void {
    if (job.kind === 'element') this.#discardFiles(job.waiting.command());
    if (job.kind === 'run') this.#shownIdle(job.cells);
  }

  #shownIdle(cells: readonly CodeOfCell[]): void {
    this.#events.shown(
      cells.map(({ cellId }) => cellId),
      'idle',
    );
  }

  /** Removes the files that a dropped value names, unless `kept` names them. */
  #discardFiles(dropped: unknown, kept?: unknown): void {
    const ids = elementFilesIn(dropped);
    if (ids.size === 0) return;
    for (const id of elementFilesIn(kept)) ids.delete(id);
    this.#ports.discardFiles([...ids]);
  }

  async #work(): Promise<void> {
    if (this.#isWorking) return;
    this.#isWorking = true;
    clearTimeout(this.#retry);
    try {
      for (let job = this.#jobs.shift(); job !== undefined && !this.#isOver; job = this.#jobs.shift()) {
        this.#present = job;
        this.#waitingChars -= job.chars;
        const hasBegun = await this.#begin(job);
        const isWanted = this.#present === job; // an interrupt discards the job
        this.#present = undefined;
        if (!hasBegun && !isWanted && job.kind === 'element') this.#dropped(job);
        if (hasBegun || !isWanted) continue;
        this.#jobs.unshift(job);
        this.#waitingChars += job.chars;
        // A notice of the session ends the wait earlier.
        this.#retry = setTimeout(() => this.wake(), RETRY_MS).unref();
        return;
      }
    } finally {
      this.#isWorking = false;
    }
    if (!this.#isOver) this.#events.idle();
  }

  /** Begins a job. Returns false when it has to wait. */
  async #begin(job: Job): Promise<boolean> {
    try {
      if (job.kind === 'element') {
        await this.#ports.element(job.userId, () => job.waiting.command());
        return true;
      }
      if (job.kind === 'all') {
        await this.#ports.submit(job.userId, 'all');
        return true;
      }
      const { view } = this.#live;
      const isLacking = job.cells.some(({ cellId }) => view.get(cellId) === undefined);
      if (isLacking && performance.now() < job.lacksUntilMs) return false;
      const cells = job.cells.flatMap(({ cellId, code }) => {
        const cell = view.get(cellId);
        if (cell === undefined) return [];
        return [cell.code === code ? { cellId } : { cellId, code }];
      });
      const missing = job.cells.filter(({ cellId }) => view.get(cellId) === undefined);
      if (cells.length > 0) await this.#ports.submit(job.userId, cells);
      if (missing.length > 0) this.#shownIdle(missing); // the page has not created them in time, so they will not run
      return true;
    } catch (error) {
      if (error instanceof AppError && WAITING.includes(error.code)) return false;
      this.#dropped(job);
      this.#events.refused(this.#ports.describe(error));
      return true;
    }
  }
}
