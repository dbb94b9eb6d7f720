import { adviceFor, meaningOf } from './system-error.ts';

/**
 * A problem that keeps the server from working, and advice for its operator, together in one line.
 */
export class OperatorError extends Error {
  /** The problem, as a sentence. */
  readonly problem: string;
  /** The advice, in one or two sentences. */
  readonly advice: string;
  constructor(problem: string, advice: string, cause?: unknown) {
    super(`${problem} ${advice}`, cause === undefined ? undefined : { cause });
    this.name = 'OperatorError';
    this.problem = problem;
    this.advice = advice;
  }
}

/**
 * Returns the error for an action that the system refused. `attempt` is a text such as "The keyring
 * /x cannot be read".
 */
export function systemFailure(attempt: string, error: unknown): OperatorError {
  return new OperatorError(`${attempt}: ${meaningOf(error)}.`, adviceFor(error), error);
}
