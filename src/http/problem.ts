import { AppError, CATALOGUE } from '#src/core/errors.ts';
import type { Log } from '#src/core/log.ts';
import type { BytesReply } from './reply.ts';

/** What of the request a problem document shows. */
export interface ProblemContext {
  readonly requestId: string;
  /** The path, without the query. */
  readonly instance: string;
}

/** The RFC 9457 document of a failure, with the headers its status calls for. */
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
    headers: { ...expectedHeaders(status), ...extras.headers },
  };
}

function expectedHeaders(status: number): Record<string, string> {
  if (status === 401) return { 'www-authenticate': 'Bearer realm="troupe"' };
  if (status === 429 || status === 503) return { 'retry-after': '1' };
  return {};
}

/** Where the edge reports what is nobody's fault but ours. */
export type EdgeLog = Pick<Log, 'error'>;

/** The caller's error as it is; anything else is a bug: logged with the request id, answered without its text. */
export function toAppError(error: unknown, log: EdgeLog, context: ProblemContext): AppError {
  if (error instanceof AppError) return error;
  log.error(
    { err: error, requestId: context.requestId, path: context.instance },
    'a request failed unexpectedly',
  );
  return new AppError('internal', `Quote the request id ${context.requestId} when you report this.`);
}
