/** What one check has found. `advice` says what to do, when there is something to do. */
export interface Finding {
  readonly check: string;
  /** `warning`: the server works, but not as well as it could; `problem`: it does not. */
  readonly status: 'ok' | 'warning' | 'problem';
  readonly detail: string;
  readonly advice: string | null;
}

export function ok(check: string, detail: string): Finding {
  return { check, status: 'ok', detail, advice: null };
}

export function warning(check: string, detail: string, advice: string): Finding {
  return { check, status: 'warning', detail, advice };
}

export function problem(check: string, detail: string, advice: string): Finding {
  return { check, status: 'problem', detail, advice };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
