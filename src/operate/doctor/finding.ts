/** The result of one check. `advice` is the solution of the problem; `null` when there is nothing to do. */
export interface Finding {
  readonly check: string;
  /** With a `warning` the server works, but not as well as it could; with a `problem` it does not work. */
  readonly status: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  readonly advice: string | null;
}

/** Returns the finding that all is well. */
export function fine(check: string, detail: string): Finding {
  return { check, status: 'ok', detail, advice: null };
}

/** Returns a finding that the operator should look at. */
export function warning(check: string, detail: string, advice: string): Finding {
  return { check, status: 'warning', detail, advice };
}

/** Returns a finding that keeps the server from working. */
export function problem(check: string, detail: string, advice: string): Finding {
  return { check, status: 'problem', detail, advice };
}

/** Returns the message of an error, or the text of any other thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
