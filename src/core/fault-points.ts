/** Moments between two steps that a crash must be able to fall into. */
export type FaultPoint =
  | 'turn.decided'
  | 'turn.durable'
  | 'run.begun'
  | 'run.ended'
  | 'kernel.ready'
  | 'session.released'
  | 'tool.called'
  | 'tool.ran';

/** Does nothing. Under `--conditions=development` the tests put something else in its place (package.json, `imports`). */
export function reach(_: FaultPoint): void {}
