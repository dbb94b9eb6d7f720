/** One mistake in the request: its place (a JSON pointer into the body, or `query/<name>`) and its description. */
export interface RequestViolation {
  readonly path: string;
  readonly message: string;
}

/** A response that is not 2xx. `code` is stable; it is `unexpected_response` when a proxy sent the response. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly requestId: string | undefined;
  readonly errors: readonly RequestViolation[];
  /** How many seconds to wait before another attempt, if the server says so. */
  readonly retryAfter: number | undefined;
  /** The whole body: the problem document with its additional members, or the unexpected body that was sent instead. */
  readonly body: unknown;

  constructor(status: number, headers: Headers, body: unknown) {
    const problem = isObject(body) ? body : {};
    const detail = textOf(problem.detail) ?? textOf(problem.message) ?? `The server answered ${status}.`;
    super(detail);
    this.name = 'ApiError';
    this.status = status;
    this.code = textOf(problem.code) ?? 'unexpected_response';
    this.detail = detail;
    this.requestId = textOf(problem.requestId) ?? headers.get('x-request-id') ?? undefined;
    this.errors = Array.isArray(problem.errors) ? (problem.errors as RequestViolation[]) : [];
    this.retryAfter = secondsOf(headers.get('retry-after'));
    this.body = body;
  }
}

/** Returns the error for a 2xx or 3xx response that no Troupe server sends. `what` completes the sentence "The answer …". */
export function unexpectedResponse({ status, headers }: Response, url: string, what: string): ApiError {
  const detail = `The answer of ${url} ${what}. Is the base URL that of a Troupe server?`;
  return new ApiError(status, headers, { detail });
}

/** There was no response: the server could not be reached, or the connection ended before the response did. */
export class ConnectionError extends Error {
  constructor(url: string, cause: unknown) {
    super(`No answer from ${url}: ${reasonOf(cause)}.`, { cause });
    this.name = 'ConnectionError';
  }
}

/** Returns the message of the innermost cause of `fetch failed`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause !== undefined) return reasonOf(error.cause);
  // Several addresses were tried; the aggregate error has no message of its own.
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  return error.message;
}

function secondsOf(header: string | null): number | undefined {
  return header !== null && /^\d{1,9}$/.test(header) ? Number(header) : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
