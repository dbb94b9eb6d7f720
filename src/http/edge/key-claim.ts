/** Claims the idempotency key of a request that is about to be carried out. */
import { beginIdempotent, type IdempotentAttempt, type Replay } from '../idempotency/idempotency.ts';
import { pathWith } from '../route.ts';
import type { AdmittedRequest, PreparedRoute } from './admission.ts';
import type { HttpContext } from './http-context.ts';
import type { TakenBody } from './taken-body.ts';

/**
 * Returns the attempt to settle with the reply, the reply to an earlier request with the same key, or undefined when there is no
 * key. Throws like `beginIdempotent`, and when the caller may not use the object that the request names.
 */
export function claimKey(
  prepared: PreparedRoute,
  { idempotency }: Pick<HttpContext, 'idempotency'>,
  request: AdmittedRequest,
  body: TakenBody,
): IdempotentAttempt | Replay | undefined {
  const { route } = prepared;
  const { principal, idempotencyKey: key, headers, credential } = request;
  if (key === undefined || principal === undefined) return undefined;
  route.checkAccess?.(request);
  const { workspaceId, userId } = principal;
  const path = pathOf(prepared, request);
  const hash = body.hashOf(key);
  return beginIdempotent(idempotency, {
    workspaceId,
    userId,
    method: route.method,
    path,
    key,
    credential,
    headers,
    hash,
    isShared: prepared.sharesKeys,
  });
}

/** Returns the path of the request. It is rebuilt, because uWebSockets.js has discarded it by then. */
function pathOf({ route }: PreparedRoute, { params }: AdmittedRequest): string {
  return pathWith(route.path, params);
}

/** Returns the path of a request for logs and answers, without the credential of a page that may be part of it. */
export function shownPathOf({ route }: PreparedRoute, { params }: AdmittedRequest): string {
  const isSecret = route.credential !== undefined && params.code !== undefined;
  return pathWith(route.path, isSecret ? { ...params, code: 'code' } : params);
}
