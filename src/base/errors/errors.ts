import type { FailureCode } from './failures.ts';

/** The common properties of all errors with one code. */
export interface CatalogueEntry {
  readonly status: number;
  readonly title: string;
  /** Advice for the caller. Every code with which a session, a run or an environment refuses a command has advice. */
  readonly advice?: string;
  /** The `Retry-After` of the response in seconds, for a code whose status does not imply one. */
  readonly retryAfterS?: number;
}

const ENTRIES = {
  malformed_json: { status: 400, title: 'The body is not valid JSON' },
  invalid_request: { status: 400, title: 'The request does not match the schema' },
  invalid_cursor: { status: 400, title: 'The cursor does not belong to this list' },
  missing_workspace: { status: 400, title: 'The Service-Workspace-Id header is missing' },
  missing_session: { status: 400, title: 'The Service-Session-Id header is missing' },
  duplicate_cell: { status: 400, title: 'A cell id appears twice' },
  unknown_cell: { status: 400, title: 'The notebook has no such cell' },
  unknown_model: { status: 400, title: 'There is no model with this name' },
  unreadable_notebook: { status: 400, title: 'The file is not a readable notebook' },
  unauthenticated: { status: 401, title: 'A valid access token is required' },
  missing_scope: { status: 403, title: 'The access token lacks a required scope' },
  no_workspace: { status: 403, title: 'You are a member of no workspace' },
  role_too_low: { status: 403, title: 'Your role in this workspace does not allow this' },
  conversation_read_only: { status: 403, title: 'You may read this conversation, but not change it' },
  conversation_not_shared: {
    status: 403,
    title: 'The conversation of this notebook is not shared with you',
  },
  cross_origin: { status: 403, title: 'A request from another origin may not change this' },
  not_found: { status: 404, title: 'The resource does not exist, or you may not see it' },
  method_not_allowed: { status: 405, title: 'The resource does not support this method' },
  stale_update: { status: 409, title: 'The resource has changed since it was read' },
  session_open: {
    status: 409,
    title: 'A session is open on this notebook',
    advice: 'Close the session first.',
  },
  session_exists: {
    status: 409,
    title: 'A live session with this id already exists',
    advice: 'Use that session, or close it first.',
  },
  session_busy: {
    status: 409,
    title: 'The session is busy',
    advice: 'Wait until the session is ready again, or cancel its run.',
  },
  session_not_ready: {
    status: 409,
    title: 'The session is not ready',
    advice: 'Wait until the session is ready: follow its event stream, or GET the session again.',
    retryAfterS: 1,
  },
  session_failed: {
    status: 409,
    title: 'The session has failed',
    advice:
      'A GET of the session shows why it failed. A few seconds after the failure, a GET also starts the session again.',
  },
  session_closed: {
    status: 409,
    title: 'The session is closed',
    advice: 'Open the session again to use it.',
  },
  session_not_editable: {
    status: 409,
    title: 'The session is in run mode and cannot be edited',
    advice: 'Omit code and config, or open the session again in edit mode.',
  },
  structural_error: { status: 409, title: 'The notebook has structural errors' },
  notebook_not_ready: {
    status: 409,
    title: 'The notebook session is not ready',
    advice: 'Wait until the session is ready: follow its event stream, or GET the session again.',
  },
  binding_differs: { status: 409, title: 'The conversation is bound to another notebook, or to none' },
  environment_differs: {
    status: 409,
    title: 'The notebook session belongs to another environment',
    advice: 'Name the environment of the session: a GET of the session shows it.',
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
    title: 'Sessions are still attached to the environment',
    advice: 'Close these sessions first.',
  },
  environment_closed: {
    status: 409,
    title: 'The environment is closed',
    advice: 'Create another environment.',
  },
  run_finished: {
    status: 409,
    title: 'The run has already finished',
    advice: 'A GET of the run shows how it ended.',
  },
  run_in_progress: {
    status: 409,
    title: 'The run has not ended yet',
    advice: 'Cancel the run first, or wait until it has ended.',
  },
  job_running: {
    status: 409,
    title: 'An occurrence of the job is in progress',
    advice: 'Wait until the occurrence is over, or cancel its run.',
  },
  hook_paused: {
    status: 409,
    title: 'The hook is paused',
    advice: 'Resume the hook first. Its `reason` says why it has paused.',
  },
  datasource_changed: { status: 409, title: 'Another request changed the datasource meanwhile' },
  already_exists: { status: 409, title: 'A datasource or a member with this name already exists' },
  packages_disabled: { status: 409, title: 'This server installs no packages' },
  nodes_disabled: { status: 409, title: 'This server has no kernel nodes' },
  packages_not_installed: { status: 409, title: 'The packages could not be installed' },
  installation_in_progress: { status: 409, title: 'Packages are being installed in this workspace' },
  unwritable_notebook: { status: 409, title: 'The notebook cannot be written in this format' },
  workspace_in_use: {
    status: 409,
    title: 'Sessions are open in the workspace',
    advice: 'Close these sessions first.',
  },
  last_workspace: {
    status: 409,
    title: 'You own no other workspace',
    advice: 'Create another workspace first.',
  },
  last_owner: { status: 409, title: 'A workspace must keep at least one owner' },
  idempotency_key_reused: { status: 409, title: 'The idempotency key was used with another request' },
  idempotency_in_progress: {
    status: 409,
    title: 'The first request with this idempotency key is still running',
  },
  key_in_use: { status: 409, title: 'The key is in use' },
  not_a_file: { status: 409, title: 'The path does not lead to a file' },
  file_inaccessible: { status: 409, title: 'The permissions of the file do not allow this' },
  precondition_failed: {
    status: 412,
    title: 'The resource is not in the state that If-Match or If-None-Match asks for',
  },
  body_too_large: { status: 413, title: 'The request body is too large' },
  unsupported_media_type: { status: 415, title: 'The request body must be application/json' },
  range_not_satisfiable: { status: 416, title: 'The requested range lies outside of the content' },
  too_many_attempts: { status: 429, title: 'Too many wrong access tokens' },
  quota_exceeded: { status: 429, title: 'The workspace has reached a quota' },
  internal: { status: 500, title: 'The server failed to process the request' },
  record_damaged: { status: 500, title: 'A stored record is damaged on the disk' },
  unavailable: { status: 503, title: 'The server cannot accept this request now' },
  read_only: { status: 503, title: 'The server only reads (TROUPE_READ_ONLY)', retryAfterS: 300 },
  storage_full: { status: 507, title: 'The disk of the server is full' },
  file_quota_exceeded: { status: 507, title: 'The files of the workspace have reached their quota' },
  at_capacity: { status: 503, title: 'The server has reached its session limit' },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;

/** A code of the catalogue. */
export type ErrorCode = keyof typeof ENTRIES;

/**
 * The catalogue of every error code that the API can return, with its HTTP status and its title. A published code never
 * changes. The table in the documentation is made from it.
 */
export const CATALOGUE: Readonly<Record<ErrorCode, CatalogueEntry>> = ENTRIES;

/** Returns whether the code is in the catalogue. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(CATALOGUE, code);
}

/** One mistake in a request: its place (a JSON pointer into the body, or `query/<name>`) and a message. */
export interface Violation {
  readonly path: string;
  readonly message: string;
}

/** Further parts of an error response. */
export interface ErrorExtras {
  /** Becomes the member `errors` of the problem document. */
  readonly errors?: readonly Violation[];
  /** Further members of the problem document, such as the cells of a structural error. */
  readonly members?: Readonly<Record<string, unknown>>;
  /** Response headers such as `retry-after` or `allow`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/**
 * A failure that the caller caused or can act on. Anything else that is thrown is a bug: the response is a 500 without
 * its text.
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

/** A failure as plain data, without a stack: inside actors, in records, and between processes. */
export interface Failure {
  readonly code: FailureCode;
  readonly message: string;
}

/** Returns the error for a change that a server with TROUPE_READ_ONLY does not make. */
export function readOnly(): AppError {
  return new AppError(
    'read_only',
    'This server was started with TROUPE_READ_ONLY: it answers reads and changes nothing. ' +
      'Send changes to the server that owns these data, or ask an operator to start this server again without that setting. ' +
      'Nobody can sign in with a browser here, but access tokens work.',
  );
}

/**
 * Returns the error for a resource that does not exist, or that the caller may not see. Both get the same response, byte
 * for byte, so that a caller cannot tell them apart. `path` is the member of the body that names the resource.
 */
export function notFound(path?: string): AppError {
  const message = 'names a resource that does not exist or that you may not see';
  return path === undefined
    ? new AppError('not_found', 'There is no such resource, or you may not see it.')
    : new AppError('not_found', `${path} ${message}.`, { errors: [{ path, message }] });
}
