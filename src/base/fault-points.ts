/** Moments between two steps, at which tests crash the server. */
export type FaultPoint =
  | 'turn.decided'
  | 'turn.durable'
  | 'turn.shared'
  | 'run.begun'
  | 'run.ended'
  | 'job.fired'
  | 'job.running'
  | 'job.ended'
  | 'job.superseded'
  | 'job.reported'
  | 'hook.noted'
  | 'hook.told'
  | 'hook.begun'
  | 'hook.sending'
  | 'hook.answered'
  | 'hook.sent'
  | 'kernel.ready'
  | 'session.released'
  | 'tool.called'
  | 'tool.ran';

/** Does nothing. Under `--conditions=development` the tests replace this module (see `imports` in package.json). */
export function faultPoint(_: FaultPoint): void {}

/** A moment at which tests delay a commit: before LMDB has it, or after LMDB has flushed it. */
export type PausePoint = 'turn.flushing' | 'turn.flushed';

/** Returns undefined. For tests it returns a promise to wait for. */
export function faultPause(_: PausePoint): Promise<void> | undefined {
  return undefined;
}
