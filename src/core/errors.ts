/** What every error with one code has in common. */
export interface CatalogueEntry {
  readonly status: number;
  readonly title: string;
  /** What the caller can do, for codes by which a state refuses a command. */
  readonly advice?: string;
}

const ENTRIES = {
  malformed_json: { status: 400, title: 'The body is not valid JSON' },
  invalid_request: { status: 400, title: 'The request does not match the schema' },
  invalid_cursor: { status: 400, title: 'The cursor is not an item of this list' },
  missing_workspace: { status: 400, title: 'The Service-Workspace-Id header is missing' },
  missing_session: { status: 400, title: 'The Service-Session-Id header is missing' },
  duplicate_cell: { status: 400, title: 'A cell id appears twice' },
  unknown_cell: { status: 400, title: 'The notebook has no such cell' },
  unknown_model: { status: 400, title: 'There is no such model' },
  unreadable_notebook: { status: 400, title: 'The file is not a readable notebook' },
  unauthenticated: { status: 401, title: 'A valid access token is required' },
  missing_scope: { status: 403, title: 'The access token lacks a scope' },
  role_too_low: { status: 403, title: 'Your role in this workspace does not allow this' },
  conversation_read_only: { status: 403, title: 'The conversation belongs to somebody else' },
  cross_origin: { status: 403, title: 'Cross-origin requests may not change this' },
  not_found: { status: 404, title: 'There is no such resource' },
  method_not_allowed: { status: 405, title: 'The resource does not support this method' },
  stale_update: { status: 409, title: 'The resource has changed since it was read' },
  session_open: {
    status: 409,
    title: 'A session is open on this notebook',
    advice: 'Close it first.',
  },
  session_exists: {
    status: 409,
    title: 'A live session with this id exists',
    advice: 'Use that one, or close it first.',
  },
  session_busy: {
    status: 409,
    title: 'The session is busy',
    advice: 'Wait until it is ready again, or cancel what it does.',
  },
  session_not_ready: {
    status: 409,
    title: 'The session is not ready',
    advice: 'Wait until it is ready: its events and a GET of it say when.',
  },
  session_failed: {
    status: 409,
    title: 'The session has failed',
    advice: 'A GET of it says why, and a few seconds later starts it again.',
  },
  session_closed: {
    status: 409,
    title: 'The session is closed',
    advice: 'To use it, open it again.',
  },
  session_not_editable: {
    status: 409,
    title: 'The session was opened in run mode',
    advice: 'Leave code and config out, or open it again in edit mode.',
  },
  structural_error: { status: 409, title: 'The notebook has structural errors' },
  notebook_not_ready: {
    status: 409,
    title: 'The notebook session is not ready',
    advice: 'Wait until it is ready: its events and a GET of it say when.',
  },
  binding_differs: { status: 409, title: 'The conversation is bound to another notebook, or to none' },
  environment_differs: {
    status: 409,
    title: 'The notebook session belongs to another environment',
    advice: 'Name the environment that it is in: a GET of it says which.',
  },
  no_model_configured: { status: 409, title: 'No model is configured' },
  model_not_configured: { status: 409, title: 'The provider of this model is not configured' },
  environment_occupied: {
    status: 409,
    title: 'The environment already has an active notebook session',
    advice: 'Close that session first, or take another environment.',
  },
  environment_in_use: {
    status: 409,
    title: 'Sessions are attached to the environment',
    advice: 'Close them first.',
  },
  environment_closed: {
    status: 409,
    title: 'The environment is closed',
    advice: 'Create another one.',
  },
  run_finished: {
    status: 409,
    title: 'The run has already finished',
    advice: 'A GET of it says how.',
  },
  datasource_changed: { status: 409, title: 'The datasource was changed by somebody else meanwhile' },
  already_exists: { status: 409, title: 'It already exists' },
  unwritable_notebook: { status: 409, title: 'The notebook cannot be written in this format' },
  last_owner: { status: 409, title: 'A workspace needs an owner' },
  idempotency_key_reused: { status: 409, title: 'The idempotency key was used with another request' },
  idempotency_in_progress: {
    status: 409,
    title: 'The first request with this idempotency key is still running',
  },
  body_too_large: { status: 413, title: 'The request body is too large' },
  unsupported_media_type: { status: 415, title: 'The request body must be application/json' },
  range_not_satisfiable: { status: 416, title: 'The range lies outside the asset' },
  too_many_attempts: { status: 429, title: 'Too many wrong access tokens' },
  quota_exceeded: { status: 429, title: 'The workspace has reached a quota' },
  internal: { status: 500, title: 'Something went wrong on our side' },
  unavailable: { status: 503, title: 'The server cannot take this request now' },
  at_capacity: { status: 503, title: 'The server has reached its session limit' },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;

export type ErrorCode = keyof typeof ENTRIES;

/**
 * The error catalogue: every code that the API can return, with its HTTP status and title. Codes never change once
 * shipped. The table of errors in the documentation is made from it.
 */
export const CATALOGUE: Readonly<Record<ErrorCode, CatalogueEntry>> = ENTRIES;

/** Whether `code` is in the catalogue. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(CATALOGUE, code);
}

/** One violation of a schema: where (JSON pointer into the body, or `query/<name>`) and what. */
export interface Violation {
  readonly path: string;
  readonly message: string;
}

export interface ErrorExtras {
  /** Shown as `errors` in the problem document. */
  readonly errors?: readonly Violation[];
  /** Further members of the problem document, such as the cells of a structural error. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Response headers such as `retry-after` or `allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/**
 * The one class for failures that a caller caused or can act on. Anything else that is thrown is a bug and answers
 * 500 without its text.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;
  constructor(code: ErrorCode, detail: string, extras: ErrorExtras = {}) {
    super(detail, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = 'AppError';
    this.code = code;
    this.extras = extras;
  }
  get status(): number {
    return CATALOGUE[this.code].status;
  }
}

/** What a failure looks like inside an actor, in a record, or across a process border: plain data, no stack. */
export interface Failure {
  readonly code: string;
  readonly message: string;
}

/**
 * Missing, and what the caller may not know of: one answer, byte for byte, so neither can be told from the other. `path`
 * says which member of the body named it.
 */
export function notFound(path?: string): AppError {
  const message = 'names nothing that exists, or nothing that you may know of';
  return path === undefined
    ? new AppError('not_found', 'There is no such resource, or you may not know of it.')
    : new AppError('not_found', `${path} ${message}.`, { errors: [{ path, message }] });
}
