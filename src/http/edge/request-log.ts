/**
 * Writes the log's lines about requests. At `debug` each request has one. At `warn` each request has one that took longer than
 * `slowMs` on the server. At `info` at most one a second reports a request that a limit refused, with the number of others. Time in
 * which a client sends its body or reads its answer does not count.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import type { Log } from '#src/base/log/log.ts';

/** The facts about a request that the log shows. */
export interface LoggedRequest {
  readonly requestId: string;
  readonly principal: Principal | undefined;
  /** The empty string when the caller was not determined. */
  readonly remoteAddress: string;
  readonly query: unknown;
  readonly trace?: { readonly traceId: string } | undefined;
}

/** The operation of the request. */
export interface LoggedRoute {
  readonly method: string;
  /** The path with the names of its parameters. */
  readonly path: string;
}

/** How a request ended. */
export interface RequestOutcome {
  readonly status: number;
  /** Bytes of the body, before compression. */
  readonly bytes: number;
  /** Milliseconds since the server had the whole request. */
  readonly ms: number;
  /** Whether the reply lasts as long as the work behind it: an event stream, a call of code. */
  readonly mayTakeLong: boolean;
  /** Whether the client left before its reply. */
  readonly hasLeft: boolean;
}

const LIMIT_STATUSES = new Set([429, 503, 507]);
const LIMIT_INTERVAL_MS = 1000;
/** A 503 from these paths is the state of the server, so it is not counted as a refusal. */
const HEALTH = new Set(['/healthz', '/readyz']);

export interface RequestLogOptions {
  readonly log: Pick<Log, 'debug' | 'info' | 'warn'>;
  /** Whether there is a line for each request. */
  readonly logsAll: boolean;
  /** The time beyond which a request counts as slow; 0: none does. */
  readonly slowMs: number;
  /** Returns whether the server now refuses requests with 503 for another reason than a limit; when absent, the server never does. */
  readonly refusesAll?: () => boolean;
  /** A clock that never goes back; `performance.now` when absent. */
  readonly nowMs?: () => number;
}

export class RequestLog {
  readonly logsAll: boolean;
  readonly #log: RequestLogOptions['log'];
  readonly #slowMs: number;
  readonly #refusesAll: () => boolean;
  readonly #nowMs: () => number;
  #limitsLoggedAtMs = Number.NEGATIVE_INFINITY;
  #unloggedLimits = 0;

  constructor({
    log,
    logsAll,
    slowMs,
    refusesAll = () => false,
    nowMs = () => performance.now(),
  }: RequestLogOptions) {
    this.#refusesAll = refusesAll;
    this.#nowMs = nowMs;
    this.#log = log;
    this.logsAll = logsAll;
    this.#slowMs = slowMs === 0 ? Number.POSITIVE_INFINITY : slowMs;
  }

  /** Writes the lines of a request that has its reply now. */
  replied(route: LoggedRoute, request: LoggedRequest, outcome: RequestOutcome): void {
    const isSlow = outcome.ms > this.#slowMs && !outcome.mayTakeLong && !asksToWait(request.query);
    const isLimited = LIMIT_STATUSES.has(outcome.status) && !this.#isNoLimit(route, outcome);
    if (!isSlow && !isLimited && !this.logsAll) return;
    const fields = fieldsOf(route, request, outcome);
    if (isSlow) this.#log.warn(fields, 'a request was slow');
    else if (this.logsAll) this.#log.debug(fields, 'request');
    if (isLimited) this.#logLimit(fields);
  }

  #isNoLimit({ path }: LoggedRoute, { status }: RequestOutcome): boolean {
    return HEALTH.has(path) || (status === 503 && this.#refusesAll());
  }

  #logLimit(fields: ReturnType<typeof fieldsOf>): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#limitsLoggedAtMs < LIMIT_INTERVAL_MS) {
      this.#unloggedLimits++;
      return;
    }
    const others = this.#unloggedLimits;
    this.#limitsLoggedAtMs = nowMs;
    this.#unloggedLimits = 0;
    this.#log.info({ ...fields, others }, 'a limit refused a request');
  }
}

/** Whether the client asked the server to wait for something (`?wait=`). */
function asksToWait(query: unknown): boolean {
  return typeof query === 'object' && query !== null && 'wait' in query && query.wait !== 0;
}

function fieldsOf(
  route: LoggedRoute,
  { principal, requestId, remoteAddress, trace }: LoggedRequest,
  { status, bytes, ms, hasLeft }: RequestOutcome,
) {
  const durationMs = Math.round(ms * 10) / 10;
  return {
    request: { method: route.method, route: route.path, status, durationMs, bytes, requestId },
    ...(remoteAddress === '' ? {} : { address: remoteAddress }),
    ...(trace === undefined ? {} : { traceId: trace.traceId }),
    ...(hasLeft ? { hasLeft } : {}),
    ...(principal === undefined
      ? {}
      : { workspaceId: principal.workspaceId, userId: principal.userId, tokenId: principal.tokenId }),
  };
}
