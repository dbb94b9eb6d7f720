import { CATALOGUE, type ErrorCode } from '#src/core/errors.ts';
import { needsRoom, paramNamesOf, type Route } from '../route.ts';

/**
 * Returns every error that an operation can answer with, by status: the codes it declares, and those that admission can
 * answer with before the handler runs.
 */
export function errorsByStatus(route: Route): Map<number, ErrorCode[]> {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of [...new Set([...admissionErrors(route), ...(route.errors ?? [])])].sort()) {
    const { status } = CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return byStatus;
}

function admissionErrors(route: Route): ErrorCode[] {
  const codes: ErrorCode[] = ['invalid_request', 'internal', 'record_damaged'];
  if (route.whileDraining !== true) codes.push('unavailable');
  if (needsRoom(route)) codes.push('storage_full');
  if (paramNamesOf(route.path).length > 0) codes.push('not_found');
  if (route.body !== undefined) codes.push('malformed_json', 'body_too_large', 'unsupported_media_type');
  if (route.sameOrigin === true) codes.push('cross_origin');
  if (route.access === 'public') return codes;
  codes.push('unauthenticated', 'too_many_attempts');
  if (route.access === 'token') return codes;
  codes.push('missing_workspace', 'not_found', 'missing_scope', 'role_too_low');
  if (route.method === 'POST') codes.push('idempotency_key_reused', 'idempotency_in_progress');
  return codes;
}
