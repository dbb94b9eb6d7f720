/** One piece of work of a session's kernel, from the moment the session takes it to its one end. */

import type { TerminalStatus } from '#machines/run.ts';
import type { Failure } from '#src/core/errors.ts';
import type { Kernel } from '#src/kernel/kernel.ts';
import type { BridgeDone, KernelMessage } from '#src/kernel/messages.ts';
import type { LiveNotebook } from './live-notebook.ts';

export interface WorkEnd {
  readonly status: TerminalStatus;
  readonly failure: Failure | null;
}

/**
 * What the kernel is to do, and what becomes of it. `begin`, `follow`, `judge` and `cancelRequested` are called while
 * the kernel is at it; `ended` is called exactly once, also when the kernel died or was never asked.
 */
export interface WorkPlan {
  /** The run that the kernel's messages belong to, if they belong to one. */
  readonly runId: string | null;
  /** Each gives the kernel a command and answers its seq; they run one after the other, until one fails. */
  readonly steps: readonly ((kernel: Kernel) => number)[];
  follow(message: KernelMessage): void;
  /** How the work ended, once the last command is done and the view has taken its verdicts. */
  judge(done: BridgeDone, live: LiveNotebook): WorkEnd;
  cancelRequested(): void;
  ended(end: WorkEnd, live: LiveNotebook): void;
}
