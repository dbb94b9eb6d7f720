/**
 * A kernel without Python. It answers the frames of the server as the bridge and marimo do (`kernel/bridge.py`, `kernel/interrupts.py`,
 * `kernel/runs.py`), for cells whose code is in `cell-code.ts` and that share no variables. `likeness.test.ts` compares both.
 */
import { noteExecution, noteExit } from '../world/executions.ts';
import { type Life, type Task, type World, world } from '../world/world.ts';
import { type Step, stepsOf } from './cell-code.ts';
import { CONTROL, INTERRUPT, LAUNCH } from './frames.ts';

/** A command of the server. */
interface Command {
  readonly type: string;
  readonly seq: number;
  readonly cellIds?: readonly string[];
  readonly codes?: readonly string[] | Readonly<Record<string, string>>;
  readonly executionRequests?: readonly { readonly cellId: string; readonly code: string }[];
  readonly deleteIds?: readonly string[];
  readonly judge?: readonly string[];
}

type Verdict = 'success' | 'exception' | 'interrupted' | 'cancelled' | null;

interface Cell {
  code: string;
  status: Verdict;
  isStale: boolean;
}

/** The run of one command. */
interface CellRun {
  readonly command: Command;
  readonly runId: string;
  readonly waiting: string[];
  current: string | undefined;
  steps: Step[];
  /** The text that its cells have printed. */
  readonly printed: string[];
  isInterrupted: boolean;
  /** It catches all interrupts. */
  isDeaf: boolean;
}

/** Where a kernel hangs: it does not answer its launch, or does not obey the command to stop. */
export type Hang = 'start' | 'stop';

export interface KernelEnds {
  /** Sends these messages in one piece. */
  say(messages: readonly unknown[]): void;
  exit(code: number): void;
}

/** The names of marimo's commands in reports of their ends. */
const NAMES: Readonly<Record<string, string>> = {
  'create-notebook': 'CreateNotebookCommand',
  'edit-cells': 'EditCellsCommand',
  'execute-cells': 'ExecuteCellsCommand',
  'update-cell-config': 'UpdateCellConfigCommand',
};
/** How long the bridge waits for a signal that a frame has announced (`MAX_WAIT_S`). */
const MAX_WAIT_MS = 1000;
const POLL_MS = 1;
const STEP_MS = 0.05;
const PRINT_MS = 0.01;
const BEGIN_MS = 0.5;
const OPEN_MS = 20;
const INTERRUPTION = {
  channel: 'marimo-error',
  mimetype: 'application/vnd.marimo+error',
  data: [{ type: 'interruption' }],
};

export class ScriptedKernel {
  readonly #world: World = world();
  readonly #life: Life;
  readonly #ends: KernelEnds;
  readonly #hangsAt: Hang | undefined;
  readonly #cells = new Map<string, Cell>();
  /** The cells that may have changed since the end of the last command (`kernel/verdicts.py`). */
  readonly #noted = new Set<string>();
  readonly #queue: Command[] = [];
  #isBusy = false;
  #runs = 0;
  #run: CellRun | undefined;
  #step: Task | undefined;
  /** The messages that the kernel has made and not sent yet. */
  readonly #gathered: unknown[] = [];
  #gathers = false;
  // The members of `Interrupts` in interrupts.py.
  #wanted: number | undefined;
  #announced = 0;
  #arrived = 0;
  #current: number | undefined;
  #raised: number | undefined;

  constructor(life: Life, ends: KernelEnds, hangsAt?: Hang) {
    this.#life = life;
    this.#ends = ends;
    this.#hangsAt = hangsAt;
  }

  /** Takes a frame of the server. */
  take(channel: number, body: Buffer): void {
    if (channel === LAUNCH) {
      const ready = () => this.#say({ op: 'bridge-ready', ms: 1 });
      if (this.#hangsAt !== 'start') this.#after(1 + this.#chance(OPEN_MS), ready);
    } else if (channel === INTERRUPT) {
      this.#wanted = body.readUInt32LE(0);
      this.#announced++;
    } else if (channel === CONTROL) {
      this.#queue.push(JSON.parse(body.toString()) as Command);
      this.#next();
    }
  }

  /** Handles SIGINT. */
  interrupt(): void {
    const isOwn = this.#arrived >= this.#announced;
    if (!isOwn) this.#arrived++;
    if (isOwn ? !this.#isDue : this.#isDue && this.#raised !== this.#current) this.#raise();
  }

  get #isDue(): boolean {
    return this.#current !== undefined && this.#current === this.#wanted;
  }

  #raise(): void {
    const run = this.#run;
    if (run === undefined) return;
    this.#raised = this.#current;
    if (run.isDeaf) return;
    run.isInterrupted = true;
    if (run.current === undefined) return; // the run stops before its next cell
    if (this.#step !== undefined) this.#step.isCancelled = true;
    this.#after(this.#chance(1), () => this.#endInterrupted(run));
  }

  /** Begins the next command once every announced signal has come. */
  #next(): void {
    if (this.#isBusy) return;
    const command = this.#queue.shift();
    if (command === undefined) return;
    this.#isBusy = true;
    this.#begin(command, this.#world.nowMs + MAX_WAIT_MS);
  }

  #begin(command: Command, deadlineMs: number): void {
    if (this.#arrived < this.#announced && this.#world.nowMs < deadlineMs) {
      this.#after(POLL_MS, () => this.#begin(command, deadlineMs));
      return;
    }
    this.#arrived = this.#announced;
    this.#current = command.seq;
    this.#gathers = true;
    if (command.type === 'stop-kernel') {
      if (this.#hangsAt !== 'stop') this.#ends.exit(0);
    } else if (command.type === 'execute-cells') this.#execute(command);
    else {
      const { editMs } = this.#world.nature;
      const mostMs = command.type === 'create-notebook' ? OPEN_MS : editMs;
      this.#after(0.1 + this.#chance(mostMs), () => this.#carryOut(command));
    }
  }

  #carryOut(command: Command): void {
    const { type, judge, executionRequests = [], codes = {}, deleteIds = [] } = command;
    if (judge !== undefined) this.#say({ op: 'bridge-judged', errors: {} });
    else if (type === 'create-notebook') {
      for (const { cellId, code } of executionRequests) this.#register(cellId, code);
      for (const { cellId, code } of executionRequests)
        if (code !== '') this.#sayCell(undefined, cellId, { stale_inputs: true });
    } else if (type === 'edit-cells') {
      for (const [cellId, code] of Object.entries(codes)) this.#register(cellId, code);
      for (const cellId of deleteIds) this.#cells.delete(cellId);
    } else if (type === 'execute-scratchpad') this.#sayProof();
    this.#done(command, false);
  }

  /** Prints what the proof that kernels start asks for (`kernel-proof.ts`), on a machine that confines nothing. */
  #sayProof(): void {
    const data = 'TROUPE-PROOF{"privileged":false}\n';
    const console = stamped(this.#world, { channel: 'stdout', mimetype: 'text/plain', data });
    this.#sayCell(undefined, '__scratch__', { console });
  }

  /** A cell with new code comes after all others, as in marimo's graph. */
  #register(cellId: string, code: string): void {
    this.#cells.delete(cellId);
    this.#cells.set(cellId, { code, status: null, isStale: true });
    this.#noted.add(cellId);
  }

  #done(command: Command, interrupted: boolean): void {
    const changed = [...this.#cells].filter(([id]) => this.#noted.has(id));
    const cells = Object.fromEntries(changed.map(([id, { status, isStale }]) => [id, [status, isStale, []]]));
    this.#noted.clear();
    const type = NAMES[command.type] ?? command.type;
    this.#current = undefined;
    this.#run = undefined;
    this.#say({
      op: 'bridge-done',
      seq: command.seq,
      token: null,
      type,
      error: null,
      interrupted,
      cells,
    });
    this.#isBusy = false;
    this.#release();
    this.#after(STEP_MS, () => this.#next());
  }

  #execute(command: Command): void {
    const runId = `r${++this.#runs}`;
    const cellIds = command.cellIds ?? [];
    const codes = (command.codes ?? []) as readonly string[];
    const unchanged = new Set<string>();
    for (const [at, cellId] of cellIds.entries()) {
      const code = codes[at] ?? '';
      if (this.#cells.get(cellId)?.code === code) unchanged.add(cellId);
      else this.#register(cellId, code);
    }
    const waiting = [...this.#cells.keys()].filter((cellId) => cellIds.includes(cellId));
    const run: CellRun = {
      command,
      runId,
      waiting,
      current: undefined,
      steps: [],
      printed: [],
      isInterrupted: false,
      isDeaf: false,
    };
    this.#run = run;
    for (const cellId of waiting) {
      this.#noted.add(cellId);
      this.#sayCell(run, cellId, { status: 'queued' });
      if (unchanged.has(cellId) && this.#cells.get(cellId)!.isStale)
        this.#sayCell(run, cellId, { stale_inputs: false });
    }
    this.#after(STEP_MS + this.#chance(BEGIN_MS), () => {
      if (run.isInterrupted || this.#isDue) this.#cancelAll(run);
      else this.#runCells(run);
    });
  }

  #runCells(run: CellRun): void {
    if (run.isInterrupted) {
      this.#cancelRest(run);
      return;
    }
    const cellId = run.waiting.shift();
    if (cellId === undefined) {
      this.#after(STEP_MS, () => this.#done(run.command, false));
      return;
    }
    run.current = cellId;
    const cell = this.#cells.get(cellId)!;
    cell.isStale = false;
    this.#sayExecution(run, cellId, 'planned');
    this.#sayExecution(run, cellId, 'running');
    this.#sayCell(run, cellId, { stale_inputs: false });
    this.#sayCell(run, cellId, { status: 'running', console: [] });
    if (this.#isDue) {
      this.#raised = this.#current;
      run.isInterrupted = true;
      this.#endInterrupted(run);
      return;
    }
    run.steps = stepsOf(cell.code);
    this.#release();
    this.#goOn(run, this.#chance(BEGIN_MS));
  }

  #goOn(run: CellRun, delayMs: number): void {
    this.#step = this.#after(delayMs, () => this.#perform(run));
  }

  #perform(run: CellRun): void {
    const step = run.steps.shift();
    const cellId = run.current!;
    if (step === undefined) {
      this.#endCell(run, 'success', { channel: 'output', mimetype: 'text/plain', data: '' });
    } else if (step.do === 'sleep') this.#goOn(run, step.ms);
    else if (step.do === 'print') {
      if (step.text !== '') {
        run.printed.push(step.text);
        noteExecution(this.#world, step.text, this.#life);
      }
      this.#sayCell(run, cellId, {
        console: stamped(this.#world, { channel: 'stdout', mimetype: 'text/plain', data: `${step.text}\n` }),
      });
      this.#goOn(run, PRINT_MS);
    } else if (step.do === 'exit') {
      noteExit(this.#world, run.printed);
      this.#ends.exit(7);
    } else if (step.do === 'deafen') {
      run.isDeaf = true;
      if (step.ms < Number.POSITIVE_INFINITY) this.#after(step.ms, () => this.#hearAgain(run));
    } else {
      const data = [{ type: 'exception', exception_type: 'ValueError', msg: 'no', raising_cell: null }];
      this.#endCell(run, 'exception', {
        channel: 'marimo-error',
        mimetype: 'application/vnd.marimo+error',
        data,
      });
    }
  }

  #hearAgain(run: CellRun): void {
    run.isDeaf = false;
    this.#perform(run);
  }

  #endCell(run: CellRun, status: Verdict, output: object): void {
    this.#gathers = true;
    const cellId = run.current!;
    const cell = this.#cells.get(cellId)!;
    cell.status = status;
    run.current = undefined;
    this.#sayCell(run, cellId, { output: stamped(this.#world, output) });
    this.#sayCell(run, cellId, { status: 'idle' });
    this.#sayExecution(run, cellId, 'completed');
    this.#after(STEP_MS, () => this.#runCells(run));
  }

  #endInterrupted(run: CellRun): void {
    this.#gathers = true;
    const cellId = run.current;
    if (cellId !== undefined && this.#run === run) {
      const cell = this.#cells.get(cellId)!;
      cell.status = 'interrupted';
      run.current = undefined;
      this.#sayCell(run, cellId, { output: stamped(this.#world, INTERRUPTION) });
      this.#sayCell(run, cellId, { status: 'idle' });
      this.#sayExecution(run, cellId, 'completed');
    }
    this.#cancelRest(run);
  }

  /** Ends the cells that an interrupt has kept from running. */
  #cancelRest(run: CellRun): void {
    for (const cellId of run.waiting.splice(0)) {
      this.#sayExecution(run, cellId, 'planned');
      this.#sayCancelled(run, cellId);
      this.#sayExecution(run, cellId, 'completed');
      this.#cancelCell(run, cellId);
    }
    this.#after(STEP_MS, () => this.#done(run.command, true));
  }

  /** Ends a run of which no cell has begun. */
  #cancelAll(run: CellRun): void {
    const cellIds = run.waiting.splice(0);
    for (const cellId of cellIds) this.#sayExecution(run, cellId, 'planned');
    for (const cellId of cellIds) this.#sayCancelled(run, cellId);
    for (const cellId of cellIds) this.#sayExecution(run, cellId, 'completed');
    for (const cellId of cellIds) this.#cancelCell(run, cellId);
    this.#after(STEP_MS, () => this.#done(run.command, true));
  }

  #sayCancelled(run: CellRun, cellId: string): void {
    this.#sayCell(run, cellId, { status: 'idle' });
    this.#sayCell(run, cellId, { output: stamped(this.#world, INTERRUPTION) });
  }

  #cancelCell(run: CellRun, cellId: string): void {
    const cell = this.#cells.get(cellId)!;
    cell.status = 'cancelled';
    cell.isStale = true;
    this.#sayCell(run, cellId, { stale_inputs: true });
  }

  #sayCell(run: CellRun | undefined, cellId: string, fields: object): void {
    const nothing = { output: null, console: null, status: null, stale_inputs: null };
    const timestamp = this.#world.nowMs / 1000;
    const runId = run?.runId ?? null;
    const ids = {
      cell_id: cellId,
      run_id: runId,
      execution_id: run === undefined ? null : `${runId}-${cellId}`,
    };
    this.#say({ op: 'cell-op', ...ids, ...nothing, ...fields, timestamp });
  }

  #sayExecution({ runId }: CellRun, cellId: string, phase: string): void {
    const ids = { execution_id: `${runId}-${cellId}`, cell_id: cellId, run_id: runId };
    this.#say({ op: 'execution', ...ids, phase, timestamp: this.#world.nowMs / 1000 });
  }

  /** The messages of a command go out together until notebook code runs, as `outbox.py` sends them. */
  #say(message: unknown): void {
    this.#gathered.push(message);
    if (!this.#gathers) this.#release();
  }

  #release(): void {
    this.#gathers = false;
    if (this.#gathered.length > 0) this.#ends.say(this.#gathered.splice(0));
  }

  #chance(mostMs: number): number {
    return this.#world.ofKernels.next() * mostMs;
  }

  #after(delayMs: number, act: () => void): Task {
    return this.#world.after(delayMs, act, this.#life);
  }
}

function stamped({ nowMs }: World, output: object): object {
  return { ...output, timestamp: nowMs / 1000 };
}
