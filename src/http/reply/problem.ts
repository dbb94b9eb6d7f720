import { AppError, CATALOGUE, type ErrorCode } from '#src/base/errors/errors.ts';
import { adviceFor, errorNameOf, meaningOf } from '#src/base/errors/system-error.ts';
import type { Log } from '#src/base/log/log.ts';
import { DamagedRecord } from '#storage/codec.ts';
import type { BytesReply } from './reply.ts';

/** The facts about a request that a problem document shows. */
export interface ProblemContext {
  readonly requestId: string;
  /** The path, without the query. */
  readonly instance: string;
}

/** The destination of reports about unexpected failures. */
export type ErrorLog = Pick<Log, 'error'>;

/** Returns the RFC 9457 document of a failure, with the headers that its status requires. */
export function problemReply(error: AppError, { requestId, instance }: ProblemContext): BytesReply {
  const { code, status, extras } = error;
  const document = {
    ...extras.members,
    type: `urn:troupe:error:${code}`,
    title: CATALOGUE[code].title,
    status,
    detail: error.message,
    instance,
    code,
    requestId,
    ...(extras.errors === undefined ? {} : { errors: extras.errors }),
  };
  return {
    kind: 'bytes',
    status,
    contentType: 'application/problem+json',
    bytes: JSON.stringify(document),
    headers: { ...requiredHeaders(code, status), ...extras.headers },
  };
}

function requiredHeaders(code: ErrorCode, status: number): Record<string, string> {
  const { retryAfterS } = CATALOGUE[code];
  if (retryAfterS !== undefined) return { 'retry-after': String(retryAfterS) };
  if (status === 401) return { 'www-authenticate': 'Bearer realm="troupe"' };
  if (status === 429 || status === 503) return { 'retry-after': '1' };
  if (status === 507) return { 'retry-after': '30' };
  return {};
}

/**
 * Returns an `AppError` unchanged. If the server has no file descriptor left, returns the temporary error for that, which is not
 * a bug. Any other error is a bug. It is logged with the request id, and the returned error `internal` shows nothing of it.
 */
export function toAppError(error: unknown, log: ErrorLog, context: ProblemContext): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof DamagedRecord)
    return new AppError(
      'record_damaged',
      'The log of the server names the record. Its operator can remove or restore the record with troupe verify --repair.',
    );
  const code = errorNameOf(error);
  if (code === 'EMFILE' || code === 'ENFILE') {
    log.error(
      { err: error, path: context.instance },
      `a request was refused: ${meaningOf(error)}. ${adviceFor(error)}`,
    );
    return new AppError('unavailable', 'The server has too many open files.');
  }
  log.error(
    { err: error, requestId: context.requestId, path: context.instance },
    'a request failed unexpectedly',
  );
  return new AppError('internal', `Quote the request id ${context.requestId} when you report this.`);
}
