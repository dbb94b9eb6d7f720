import type { WorkEnd } from '#machines/notebook-session.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import type { BridgeDone, KernelMessage } from '#src/confined/processes/kernel/messages.ts';

/** Gives the kernel one command and returns its seq. */
type Step = (kernel: Kernel) => number;

/**
 * The commands for a session's kernel, and the handling of their results. `WorkSlot` calls `follow`, `conclude` and
 * `cancelRequested` while the kernel works, and `ended` exactly once, even when the kernel died or never got a command.
 */
export interface WorkPlan {
  /** The run that the kernel's messages belong to; null when they belong to none. */
  readonly runId: string | null;
  /** The trace of the kernel's work; undefined when the work has no trace. */
  readonly trace?: TraceContext | undefined;
  /** The steps run one after the other, until one fails. */
  readonly steps: readonly [Step, ...Step[]];
  /**
   * Returns a promise that the first command waits for, or undefined when the command need not wait. Without this function the
   * kernel gets the command at once.
   */
  readonly heldUntil?: () => Promise<void> | undefined;
  /** Takes a message of the kernel, before the notebook's view does. */
  follow(message: KernelMessage): void;
  /** Returns how the work ended. Called when the last command is done and the view has taken its verdicts. */
  conclude(done: BridgeDone): WorkEnd;
  /** Called when the kernel is about to be interrupted for this work. */
  cancelRequested(): void;
  /** Delivers the result: to the record of a run, or to the waiting caller. */
  ended(end: WorkEnd): void;
}
