/**
 * Cross-origin access for the pages of an allow-list (the Fetch standard's CORS protocol). Without a list, no CORS header is read
 * or sent. The list only allows pages to read responses, and grants no rights: every request still needs its token, and requests
 * that only pages of this server may make stay refused.
 */
import type { WireRequest } from '../wire-exchange.ts';

/** The request headers that the API reads, and that pages may set. */
const REQUEST_HEADERS = [
  'authorization',
  'content-type',
  'idempotency-key',
  'if-match',
  'if-none-match',
  'if-range',
  'last-event-id',
  'marimo-server-token',
  'marimo-session-id',
  'range',
  'service-session-id',
  'service-workspace-id',
  'x-request-id',
  'x-runtime-url',
].join(', ');

/** How long a browser may remember the answer to a preflight request. Chromium caps it at two hours. */
const PREFLIGHT_MAX_AGE_S = 7200;

/**
 * Returns the origin of the request if its pages may read the answer. Returns the empty string if
 * they may not, or if the request has no origin.
 */
export type AllowedOriginOf = (req: WireRequest) => string;

/** Returns the test for a list of origins such as `https://app.example`; undefined for an empty list. */
export function createAllowedOrigins(origins: readonly string[]): AllowedOriginOf | undefined {
  if (origins.length === 0) return undefined;
  const allowed = new Set(origins);
  return (req) => {
    const origin = req.getHeader('origin');
    return allowed.has(origin) ? origin : '';
  };
}

/**
 * Returns the additional headers with which a browser's preflight request is answered, to allow the
 * request that follows.
 */
export function preflightHeaders(methods: string): Readonly<Record<string, string>> {
  return {
    'access-control-allow-methods': methods,
    'access-control-allow-headers': REQUEST_HEADERS,
    'access-control-max-age': String(PREFLIGHT_MAX_AGE_S),
  };
}
