import type { CellOp, CellOutput } from '#src/confined/processes/kernel/messages.ts';
import type { ShownStatus } from '#src/contract/wire/session.ts';
import { isConsoleText, type NotebookEvent, opEvents, textEvents } from './cell-events.ts';
import { shownStatus, type ViewCell } from './view.ts';

/** The changes of a cell that are not published yet. */
interface PendingOp {
  readonly type: 'cell-op';
  readonly cellId: string;
  /** The cell's activity as the kernel reported it. A change of the activity begins another event. */
  activity: CellOp['status'];
  status: ShownStatus | undefined;
  stale: boolean | undefined;
  output: CellOutput | undefined;
  clearsConsole: boolean;
  console: CellOutput[];
}

interface PendingText {
  readonly type: 'console-output';
  readonly cellId: string;
  readonly channel: 'stdout' | 'stderr';
  text: string;
}

interface Told {
  status: ShownStatus | undefined;
  stale: boolean | undefined;
  hasOutput: boolean;
}

/**
 * Joins the changes of a notebook's cells into as few events as possible: one for each state of a cell, with the changes since
 * the earlier state. Changes until `flush` are published together, in the order of each cell.
 *
 * Every change that subscribers see must pass through here. Otherwise a later change back could seem to be no change.
 */
export class JoinedCellChanges {
  readonly #publish: (event: NotebookEvent) => void;
  readonly #told = new Map<string, Told>();
  #pending: (PendingOp | PendingText)[] = [];
  /** The last pending item of each cell. */
  readonly #last = new Map<string, PendingOp | PendingText>();

  constructor(publish: (event: NotebookEvent) => void) {
    this.#publish = publish;
  }

  /** Takes an operation that the kernel has sent. The view has applied it; a scratchpad has no cell. */
  take(op: CellOp, cell: ViewCell | undefined): void {
    for (const entry of op.console ?? []) this.#print(op.cellId, entry);
    const clearsConsole = op.console?.length === 0;
    if (op.status === null && op.staleInputs === null && op.output === null && !clearsConsole) return;
    const pending = this.#pendingOp(op.cellId, op.status, clearsConsole);
    if (op.status !== null) pending.activity = op.status;
    // If there is no room for an output, the view keeps a note in its place.
    if (op.output !== null) pending.output = cell?.output ?? op.output;
    if (clearsConsole) pending.clearsConsole = true;
    if (cell !== undefined) setState(pending, cell);
    else if (op.status !== null)
      pending.status = op.status === 'disabled-transitively' ? 'disabled' : op.status;
  }

  /** Takes a cell that may have changed other than by an operation. */
  changed(cell: ViewCell): void {
    setState(this.#pendingOp(cell.id, null, false), cell);
  }

  /**
   * Notes that a cell has an output from an earlier time, so that subscribers learn when the cell
   * loses it.
   */
  hasOutput(cellId: string): void {
    this.#told.set(cellId, { status: undefined, stale: undefined, hasOutput: true });
  }

  /** Forgets a cell that was deleted. */
  forget(cellId: string): void {
    this.#told.delete(cellId);
  }

  /** Publishes the collected changes. */
  flush(): void {
    const pending = this.#pending;
    if (pending.length === 0) return;
    this.#pending = [];
    this.#last.clear();
    for (const item of pending) {
      if (item.type === 'console-output') {
        const { cellId, channel, text } = item;
        for (const event of textEvents(cellId, channel, text)) this.#publish(event);
      } else this.#tell(item);
    }
  }

  #tell({ cellId, status, stale, output, clearsConsole, console }: PendingOp): void {
    const told = this.#told.get(cellId) ?? { status: undefined, stale: undefined, hasOutput: false };
    this.#told.set(cellId, told);
    const isNewOutput = output !== undefined && (told.hasOutput || output.data !== '');
    const hasConsole = clearsConsole || console.length > 0;
    const state = {
      cellId,
      ...(status === undefined || status === told.status ? {} : { status }),
      ...(stale === undefined || stale === told.stale ? {} : { stale }),
    };
    told.status = status ?? told.status;
    told.stale = stale ?? told.stale;
    if (isNewOutput) told.hasOutput = output.data !== '';
    if (Object.keys(state).length === 1 && !isNewOutput && !hasConsole) return;
    const events = opEvents(state, isNewOutput ? output : undefined, hasConsole ? console : undefined);
    for (const event of events) this.#publish(event);
  }

  #print(cellId: string, entry: CellOutput): void {
    if (!isConsoleText(entry)) {
      this.#pendingOp(cellId, null, false).console.push(entry);
      return;
    }
    const { channel, data: text } = entry;
    const last = this.#last.get(cellId);
    if (last?.type === 'console-output' && last.channel === channel) last.text += text;
    else this.#push({ type: 'console-output', cellId, channel, text });
  }

  /** Returns the operation that the next change of a cell belongs to. */
  #pendingOp(cellId: string, activity: CellOp['status'], clearsConsole: boolean): PendingOp {
    const last = this.#last.get(cellId);
    const isSame = last?.type === 'cell-op' && !(clearsConsole && last.console.length > 0);
    // Another cell may have begun to wait since this change: it is told before this cell begins to run.
    const isLatest = last === this.#pending.at(-1);
    if (isSame && (activity === null || activity === last.activity || (last.activity === null && isLatest)))
      return last;
    return this.#push({
      type: 'cell-op',
      cellId,
      activity: null,
      status: undefined,
      stale: undefined,
      output: undefined,
      clearsConsole: false,
      console: [],
    });
  }

  #push<Item extends PendingOp | PendingText>(item: Item): Item {
    this.#pending.push(item);
    this.#last.set(item.cellId, item);
    return item;
  }
}

function setState(pending: PendingOp, cell: ViewCell): void {
  pending.status = shownStatus(cell);
  pending.stale = cell.stale;
}
