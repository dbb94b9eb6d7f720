import type { Work, WorkEnd } from '#machines/notebook-session.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import type { BridgeDone, KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import type { WorkPlan } from './work-plan.ts';

/**
 * - `offered`: the chart of the session has the work, but its kernel has got no command.
 * - `held`: the chart has taken the work, and the kernel gets no command of it until a commit is flushed, or edits are carried out.
 * - `running`: the kernel has command `seq`, which is step `step` of the plan.
 * - `concluded`: the last command is done. Further messages of the kernel belong to the work until it is ended.
 * - `left`: the kernel is gone. Further messages belong to no work.
 */
type Phase =
  | { readonly name: 'offered' | 'concluded' | 'left' }
  | { readonly name: 'held'; readonly isCancelled: boolean }
  | { readonly name: 'running'; readonly step: number; readonly seq: number; readonly isCancelled: boolean };

interface WorkInFlight {
  readonly work: Work;
  readonly plan: WorkPlan;
  phase: Phase;
}

/** How a piece of work ended. */
export interface ConcludedWork {
  readonly workId: string;
  readonly end: WorkEnd;
}

/** The end of work that was cancelled before the kernel had one of its commands. */
const NEVER_ASKED: BridgeDone = {
  op: 'bridge-done',
  seq: null,
  type: '',
  error: null,
  interrupted: true,
  cells: new Map(),
};

/**
 * The one piece of work that an open notebook has in flight. Only this slot has the work, from the moment the session's chart is
 * asked to take it until the work is ended. The chart decides whether the work is taken and when it ends. The driver of the
 * kernel begins it and continues it; the kernel's messages are followed here.
 */
export class WorkSlot {
  #inFlight: WorkInFlight | undefined;
  /** The plan to which the kernel's messages belong: the plan of work that is `running` or `concluded`. */
  #followed: WorkPlan | undefined;

  /** The work in flight, for the log. */
  get current(): Work | undefined {
    return this.#inFlight?.work;
  }

  /** The run that the kernel's messages belong to; null when they belong to none. */
  get runId(): string | null {
    return this.#followed?.runId ?? null;
  }

  /** The trace of the kernel's present work; undefined when the work has no trace. */
  get trace(): TraceContext | undefined {
    return this.#followed?.trace;
  }

  /**
   * Holds the work ready and calls `ask`, which asks the chart. If `ask` throws the refusal, the state is as before.
   */
  offer(work: Work, plan: WorkPlan, ask: () => void): void {
    const [before, followed] = [this.#inFlight, this.#followed];
    this.#inFlight = { work, plan, phase: { name: 'offered' } };
    this.#followed = undefined;
    try {
      ask();
    } catch (error) {
      this.#inFlight = before;
      this.#followed = followed;
      throw error;
    }
  }

  /**
   * Gives the kernel the first command of the offered work. Returns a promise when the command has to wait; call `goOn` once the
   * promise resolves. `edited` resolves when the kernel has made the edits that it was given.
   */
  begin(
    { id }: Work,
    kernel: Kernel,
    edited: Promise<void> | undefined = undefined,
  ): Promise<void> | undefined {
    const inFlight = this.#inFlight;
    invariant(inFlight?.work.id === id, 'Work begins after it was offered.', id);
    const committed = inFlight.plan.heldUntil?.();
    const held = edited === undefined ? committed : (committed?.then(() => edited) ?? edited);
    if (held === undefined) this.#first(inFlight, kernel);
    else inFlight.phase = { name: 'held', isCancelled: false };
    return held;
  }

  /**
   * Gives the kernel the first command of held work. If the work was cancelled in the meantime,
   * returns how it ended. Does nothing when the work is no longer held.
   */
  goOn({ id }: Work, kernel: Kernel): ConcludedWork | undefined {
    const inFlight = this.#inFlight;
    if (inFlight?.work.id !== id || inFlight.phase.name !== 'held') return undefined;
    if (inFlight.phase.isCancelled) return this.#conclude(inFlight, NEVER_ASKED);
    this.#first(inFlight, kernel);
    return undefined;
  }

  follow(message: KernelMessage): void {
    this.#followed?.follow(message);
  }

  /** No further command of the work is given. The caller interrupts the kernel's present command. */
  requestCancel(): void {
    const inFlight = this.#inFlight;
    if (inFlight?.phase.name === 'held') {
      inFlight.phase = { name: 'held', isCancelled: true };
      inFlight.plan.cancelRequested();
    }
    if (inFlight?.phase.name !== 'running') return;
    inFlight.phase = { ...inFlight.phase, isCancelled: true };
    inFlight.plan.cancelRequested();
  }

  /**
   * Takes the end of a command: gives the kernel the next one, or returns how the work ended. Also
   * returns undefined when the command did not belong to the work.
   */
  advance(done: BridgeDone, kernel: Kernel): ConcludedWork | undefined {
    const inFlight = this.#inFlight;
    if (inFlight?.phase.name !== 'running' || done.seq !== inFlight.phase.seq) return undefined;
    const { plan, phase } = inFlight;
    const mayGoOn = done.error === null && !done.interrupted && !phase.isCancelled;
    const next = mayGoOn ? plan.steps[phase.step + 1] : undefined;
    if (next !== undefined) {
      const step = phase.step + 1;
      inFlight.phase = { name: 'running', step, seq: next(kernel), isCancelled: false };
      return undefined;
    }
    return this.#conclude(inFlight, done);
  }

  /**
   * Notes that the kernel is gone, so later messages belong to no work. The work still has to be
   * ended.
   */
  leave(): void {
    if (this.#inFlight !== undefined) this.#inFlight.phase = { name: 'left' };
    this.#followed = undefined;
  }

  /**
   * Ends the work. Does nothing for work that is not here, because an earlier server had taken it.
   */
  end({ id }: Work, end: WorkEnd): void {
    const inFlight = this.#inFlight;
    if (inFlight?.work.id !== id) return;
    this.#inFlight = undefined;
    this.#followed = undefined;
    inFlight.plan.ended(end);
  }

  #first(inFlight: WorkInFlight, kernel: Kernel): void {
    const [first] = inFlight.plan.steps;
    inFlight.phase = { name: 'running', step: 0, seq: first(kernel), isCancelled: false };
    this.#followed = inFlight.plan;
  }

  #conclude(inFlight: WorkInFlight, done: BridgeDone): ConcludedWork {
    inFlight.phase = { name: 'concluded' };
    return { workId: inFlight.work.id, end: inFlight.plan.conclude(done) };
  }
}
