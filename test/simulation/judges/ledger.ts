/** The knowledge of the users of a simulation: the history for `test/faults/judge.ts`, and facts that only a simulation can judge. */

import { type EndSeen, type Entry, ofKind } from '#test/faults/history.ts';
import { judge } from '#test/faults/judge.ts';
import { executionsOf, exitsOf } from '../world/executions.ts';
import { type Life, type World, world } from '../world/world.ts';

/** An event as one subscriber has received it. */
export interface SeenEvent {
  readonly session: string;
  readonly follower: string;
  readonly id: string;
  readonly raw: string;
  readonly isLive: boolean;
}

/** A text that may have become the code of a cell. */
interface CodeSet {
  readonly cell: string;
  readonly token: string;
  readonly fromMs: number;
  /** When a client knew that the cell had it; undefined while that is not known. */
  knownMs: number | undefined;
}

/** A run that was accepted for a cell with the code that the cell had. */
interface PresentCodeRun {
  readonly runId: string;
  readonly cell: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The final state of a run, with what its cells have printed. */
export interface PrintedRun {
  readonly runId: string;
  readonly status: string;
  readonly printed: readonly string[];
  /** The token of the code that was sent with it, if any was. */
  readonly token: string | undefined;
  /** The code of its error; undefined when it has none. */
  readonly failure: string | undefined;
  /** Whether its code raises an error. */
  readonly raises: boolean;
  /** From its acceptance to its end, as its record says. */
  readonly tookMs: number;
}

/** A run that a session has taken, with the times at which it was sent and acknowledged. */
interface TakenRun {
  readonly runId: string;
  readonly session: string;
  readonly life: Life;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * How long after the acknowledgement of its cancellation the code of a run may still begin: a signal and its frame are on the way
 * (`Nature.signalMs`).
 */
const AFTER_CANCEL_MS = 60;
/** How much longer on a node that is silent: its lease, and some more. */
const ON_NODE_MS = 6000;
/** The error of a run whose code has ended the kernel. */
const KERNEL_EXITED = 'kernel_exited';
/** The error of a run in which a cell has raised an error, or was interrupted by somebody else than the server. */
const CELL_FAILED = 'cell_failed';
/** The errors of work that was stopped by its deadline, and by the server's limit for prompts. */
const TIMED_OUT = 'timed_out';
const PROMPT_TIMED_OUT = 'agent_time_limit';
/** How long a request that stops the work of a session may be on its way. It also stops a run that was sent meanwhile. */
const MAX_TRAVEL_MS = 500;
/** Times in records are whole milliseconds. */
const ROUNDED_MS = 2;
/** The most characters of an event in a report. */
const MAX_SHOWN_CHARS = 160;

export class Ledger {
  readonly history: Entry[] = [];
  readonly #world: World = world();
  readonly #events = new Map<string, string>();
  readonly #codes: CodeSet[] = [];
  readonly #presentRuns: PresentCodeRun[] = [];
  /** The runs whose cancellation was requested, and the times at which a session's work was. */
  readonly #cancelled = new Set<string>();
  readonly #stopped = new Map<string, number[]>();
  /** When the cancellation of a run was first acknowledged. */
  readonly #cancelledAtMs = new Map<string, number>();
  readonly #taken: TakenRun[] = [];
  readonly #seenEnds = new Set<string>();
  /** The seconds that the work of a run may take. */
  readonly #timeoutsS = new Map<string, number>();

  /** The cancellation of a run is about to be requested. */
  noteCancel(runId: string): void {
    this.#cancelled.add(runId);
  }

  /** Returns whether somebody has asked for the cancellation of a run. */
  isCancelled(runId: string): boolean {
    return this.#cancelled.has(runId);
  }

  /** The cancellation of a run was acknowledged. */
  noteCancelled(runId: string): void {
    if (!this.#cancelledAtMs.has(runId)) this.#cancelledAtMs.set(runId, this.#world.nowMs);
  }

  /** The work of a run may take so long. */
  noteDeadline(runId: string, timeoutS: number): void {
    this.#timeoutsS.set(runId, timeoutS);
  }

  /** A session has taken a run, as an answer said to a request that was sent in the present life of the server, or in an earlier one. */
  noteTaken(runId: string, session: string, fromMs: number, life: Life): void {
    if ((life.sinceMs ?? 0) > fromMs) return;
    this.#taken.push({ runId, session, life, fromMs, toMs: this.#world.nowMs });
  }

  /** A subscriber has received the end of a run. */
  noteEnd(end: EndSeen): void {
    this.history.push(end);
    this.#seenEnds.add(`${end.follower} ${end.runId}`);
  }

  /** The work of a session is about to be interrupted, or the session closed. */
  noteStop(session: string): void {
    const times = this.#stopped.get(session) ?? [];
    times.push(this.#world.nowMs);
    this.#stopped.set(session, times);
  }

  /** Returns whether a subscriber has received the end of a run. */
  hasSeenEnd(follower: string, runId: string): boolean {
    return this.#seenEnds.has(`${follower} ${runId}`);
  }

  /** An event id never repeats with other content. */
  noteEvent({ session, id, raw, isLive, follower }: SeenEvent): void {
    if (!isLive) return;
    const key = `${session} ${id}`;
    const before = this.#events.get(key);
    this.#events.set(key, raw);
    if (before === undefined || before === raw) return;
    const shown = [before, raw].map((text) => text.slice(0, MAX_SHOWN_CHARS)); // ASCII, for developers
    this.#world.problem(
      `${follower} got the event ${id} of ${session} with another content: ${shown.join(' and ')}`,
    );
  }

  /** A request that gives a cell another code was sent. Returns the function to call when it was acknowledged. */
  noteCode(cell: string, token: string): () => void {
    const set: CodeSet = { cell, token, fromMs: this.#world.nowMs, knownMs: undefined };
    this.#codes.push(set);
    return () => {
      set.knownMs = this.#world.nowMs;
    };
  }

  /** A run of a cell was accepted with the code that the cell had. */
  notePresentRun(runId: string, cell: string, fromMs: number): void {
    this.#presentRuns.push({ runId, cell, fromMs, toMs: this.#world.nowMs });
  }

  /** A run was deleted: nothing is expected of it any more. */
  forget(runId: string): void {
    const isOfRun = (entry: Entry): boolean =>
      ('runId' in entry && entry.runId === runId) ||
      ('answer' in entry &&
        typeof entry.answer === 'object' &&
        'runId' in entry.answer &&
        entry.answer.runId === runId);
    const kept = this.history.filter((entry) => !isOfRun(entry));
    this.history.splice(0, this.history.length, ...kept);
  }

  /** Judges everything; the runs are as they are at the very end. */
  judge(runs: readonly PrintedRun[]): void {
    for (const [token, { times }] of executionsOf(this.#world)) {
      if (/^[kt]u/.test(token)) this.history.push({ kind: 'executed', token, times });
      // A model is asked once more after some failures.
      if (/^pu/.test(token)) this.history.push({ kind: 'executed', token, times: 1 });
    }
    for (const problem of judge(this.history)) this.#world.problem(problem);
    this.#judgeCodes(new Map(runs.map((run) => [run.runId, run])));
    this.#judgeCancellations();
    this.#judgeLateCode(runs);
    this.#judgeOrder();
    this.#judgeStale();
    this.#judgeDeadlines(runs);
  }

  /** Code of a run does not begin after its cancellation was acknowledged. */
  #judgeLateCode(runs: readonly PrintedRun[]): void {
    const executions = executionsOf(this.#world);
    const mostMs = AFTER_CANCEL_MS + (this.#world.hasNodes ? ON_NODE_MS : 0);
    for (const { runId, token } of runs) {
      const beganMs = executions.get(token ?? '')?.lastMs;
      const cancelledMs = this.#cancelledAtMs.get(runId);
      if (beganMs !== undefined && cancelledMs !== undefined && beganMs > cancelledMs + mostMs)
        this.#world.problem(
          `the code of the run ${runId} began ${Math.round(beganMs - cancelledMs)} ms after its cancellation was acknowledged`,
        );
    }
  }

  /** A session takes a run only when the one before is over, and a crash does not undo that. */
  #judgeOrder(): void {
    const taken = new Map(this.#taken.map((run) => [run.runId, run]));
    for (const { runId, status, from } of ofKind(this.history, 'run-read')) {
      const run = taken.get(runId);
      if (status !== 'running' || run === undefined) continue;
      const next = this.#taken.find(
        ({ session, life, fromMs, toMs }) =>
          session === run.session && life === run.life && fromMs > run.toMs && toMs < from,
      );
      if (next === undefined) continue;
      this.#world.problem(
        `the run ${runId} was read as running after its session had taken the run ${next.runId}`,
      );
    }
  }

  /** A run that a dead server has left ends only by its cancellation. */
  #judgeStale(): void {
    const stale = new Set(
      ofKind(this.history, 'run-read').flatMap((read) => (read.isStale ? read.runId : [])),
    );
    for (const { runId, status } of ofKind(this.history, 'final-run'))
      if (stale.has(runId) && status !== 'cancelled')
        this.#world.problem(`the run ${runId} was stale, and its end is ${status}`);
  }

  /** Only work with a deadline is out of time, and not before that deadline. A clock that was set back tells no durations. */
  #judgeDeadlines(runs: readonly PrintedRun[]): void {
    if (this.#world.clock.wasSetBack) return;
    const { promptLimitS } = this.#world.nature;
    for (const { runId, failure, tookMs } of runs) {
      if (failure !== TIMED_OUT && failure !== PROMPT_TIMED_OUT) continue;
      const limitS = failure === TIMED_OUT ? this.#timeoutsS.get(runId) : promptLimitS;
      if (limitS === undefined) continue; // its acceptance was never answered
      if (tookMs < limitS * 1000 - ROUNDED_MS)
        this.#world.problem(`the run ${runId} had ${limitS} s, and was out of time after ${tookMs} ms`);
    }
  }

  /** A run is cancelled only if somebody has asked for that. */
  #judgeCancellations(): void {
    const sentAt = new Map<string, number>();
    for (const entry of this.history)
      if (entry.kind === 'submission' && entry.answer !== 'unknown')
        sentAt.set(entry.answer.runId, entry.from);
    for (const entry of this.history) {
      if (entry.kind !== 'final-run' || entry.status !== 'cancelled' || this.#cancelled.has(entry.runId))
        continue;
      const from = sentAt.get(entry.runId);
      if (from !== undefined && !this.#stopped.get(entry.session)?.some((at) => at + MAX_TRAVEL_MS >= from))
        this.#world.problem(`the run ${entry.runId} was cancelled, and nobody had asked for that`);
    }
  }

  /** The code that ran is the code that was accepted. */
  #judgeCodes(runs: ReadonlyMap<string, PrintedRun>): void {
    const exits = exitsOf(this.#world);
    for (const { runId, status, printed, token, failure, raises } of runs.values()) {
      if (token !== undefined && failure === CELL_FAILED && !raises)
        this.#world.problem(`the run ${runId} has failed, and its code ${token} raises no error`);
      if (failure === KERNEL_EXITED && exits.has(token ?? '') && printed.length === 0)
        this.#world.problem(
          `the code ${token} of the run ${runId} has ended its kernel, and the output lacks what it had printed`,
        );
      const other = token === undefined ? undefined : printed.find((text) => text !== token);
      if (other !== undefined)
        this.#world.problem(`the run ${runId} was accepted with the code ${token} and ran the code ${other}`);
      if (token !== undefined && status === 'completed' && printed.length === 0)
        this.#world.problem(
          `the run ${runId} is completed, and its output lacks what its code ${token} prints`,
        );
    }
    for (const { runId, cell, fromMs, toMs } of this.#presentRuns) {
      const [printed] = runs.get(runId)?.printed ?? [];
      if (printed === undefined) continue;
      const possible = this.#codesOf(cell, fromMs, toMs);
      if (!possible.has(printed))
        this.#world.problem(
          `the run ${runId} was accepted when ${cell} had the code ${[...possible].join(' or ')}, and ran the code ${printed}`,
        );
    }
  }

  /** Returns the codes that a cell may have had between two times. */
  #codesOf(cell: string, fromMs: number, toMs: number): ReadonlySet<string> {
    const sets = this.#codes.filter((set) => set.cell === cell && set.fromMs <= toMs);
    const isReplaced = (set: CodeSet) =>
      sets.some(
        (later) =>
          later !== set &&
          set.knownMs !== undefined &&
          later.fromMs >= set.knownMs &&
          later.knownMs !== undefined &&
          later.knownMs <= fromMs,
      );
    return new Set(sets.filter((set) => !isReplaced(set)).map(({ token }) => token));
  }
}
