import type { ErrorCode } from '#src/base/errors/errors.ts';

/** One mistake in the request: its place (a JSON pointer into the body, or `query/<name>`) and its description. */
export interface RequestViolation {
  readonly path: string;
  readonly message: string;
}

/** A response that is not 2xx. `code` is stable; it is `unexpected_response` when a proxy sent the response. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: ErrorCode | 'unexpected_response' | (string & {});
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
  const detail = `The answer of ${url} ${what}. Is this a Troupe server?`;
  return new ApiError(status, headers, { detail });
}

/** There was no response: the server could not be reached, or the connection ended before the response did. */
export class ConnectionError extends Error {
  /** Whether the request cannot have reached the server. Only Node.js can tell. */
  readonly isRefused: boolean;

  constructor(url: string, cause: unknown) {
    const reason = innermost(cause);
    super(`No answer from ${url}: ${Object(reason).message ?? reason}.`, { cause });
    this.name = 'ConnectionError';
    this.isRefused = Object(reason).code === 'ECONNREFUSED';
  }
}

/**
 * The connection ended before a code call, or the call of a function, did. The server interrupts code whose caller has left, so part of
 * it may have run, and the call is not repeated.
 */
export class CodeInterrupted extends ConnectionError {
  constructor(url: string, cause: unknown) {
    super(url, cause);
    this.name = 'CodeInterrupted';
    this.message += ' The code was interrupted, and is not run again.';
  }
}

/** Returns the innermost cause of `fetch failed`. When several addresses were tried, it is that of the first one. */
function innermost(error: unknown): unknown {
  const { cause, errors } = Object(error);
  const inner = cause ?? errors?.[0];
  return inner === undefined ? error : innermost(inner);
}

function secondsOf(header: string | null): number | undefined {
  return /^\d{1,9}$/.test(header ?? '') ? Number(header) : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Returns whether the value is a JSON object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
