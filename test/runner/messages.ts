/** The messages between the runner and the processes that run test files. */

/** From the runner: the next file, or that there is none. */
export type Order =
  | { readonly op: 'file'; readonly file: string; readonly ownHost: boolean }
  | { readonly op: 'end' };

/** How one test ended. */
export interface TestReport {
  readonly op: 'test';
  readonly name: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly ms: number;
  /** Why the test was skipped, or how it failed. */
  readonly text?: string;
  /** Whether only the whole file repeats it: it is a fact about the file, or tests within tests failed. */
  readonly ofFile?: boolean;
}

/** From a process that runs test files. */
export type Report =
  | TestReport
  /** A test has begun. */
  | { readonly op: 'begun'; readonly name: string }
  /** The lane is ready for a file, because the one before has ended. */
  | { readonly op: 'next' }
  /** The present file left something of the process changed; the lane has put it back. */
  | { readonly op: 'note'; readonly text: string }
  /** The present file left something changed that the lane cannot put back, so the next file needs a new lane. */
  | { readonly op: 'spent' };
