import { adviceFor, meaningOf } from './system-error.ts';

/** A problem that keeps the server from working, and advice for its operator. The message is one line of both. */
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

/** Returns the error for something that the system refused. `attempt` is such as "The keyring /x cannot be read". */
export function systemFailure(attempt: string, error: unknown): OperatorError {
  return new OperatorError(`${attempt}: ${meaningOf(error)}.`, adviceFor(error), error);
}
