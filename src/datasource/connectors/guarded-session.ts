/**
 * What stands between a connector and everybody else: errors of drivers become `DatasourceFailure` and are forgotten,
 * what does not end when it should is cut off, and every socket goes with its session.
 */

import type { EgressRoute } from '../egress/egress-route.ts';
import { categoryOfSocketError, DatasourceFailure, type FailureCategory } from '../failure.ts';
import { limitRows, type RowBatch } from '../rows.ts';
import type { ConnectorContext, Opening, Session, Target } from './connector.ts';

export interface Guarded {
  open(opening: Opening): Promise<Session>;
  classify(error: unknown): FailureCategory | undefined;
  explain?(error: unknown): string | undefined;
  /** Texts that `explain` must not give away. */
  readonly secrets: readonly string[];
  /** Most bytes that may come between two batches of rows; unset is no limit. */
  readonly mostBetweenBatches?: number;
}

const CLOSE_MS = 1000;
const CANCEL_MS = 2000;
const WATCH_MS = 20;

/** Rejects with `DatasourceFailure` only, and so does the session. */
export async function openGuarded(
  guarded: Guarded,
  { egress, limitBytes, ...rest }: ConnectorContext,
  signal: AbortSignal,
): Promise<Session> {
  const lines = openLines(limitBytes);
  const connectTo = async ({ host, port }: Target, by = signal) => {
    const route = await egress.admit(host, port, by);
    lines.add(route, by);
    return route;
  };
  const failure = (error: unknown, by: AbortSignal, aborted: FailureCategory) => {
    const exceeded = lines.exceeded();
    if (exceeded !== undefined) return new DatasourceFailure(exceeded);
    if (error instanceof DatasourceFailure) return error;
    if (by.aborted) return new DatasourceFailure(aborted);
    return new DatasourceFailure(guarded.classify(error) ?? categoryOfSocketError(error) ?? 'failed');
  };
  let session: Session;
  try {
    const opening = guarded.open({ connectTo, signal, ...rest });
    session = await cutOff(opening, signal, (late) => late.close());
  } catch (error) {
    lines.end();
    throw failure(error, signal, 'timeout');
  }
  return {
    async probe(by) {
      try {
        await cutOff(session.probe(by), by);
      } catch (error) {
        throw failure(error, by, 'timeout');
      }
    },
    async *query(sql, parameters, options) {
      const stop = endingAfterAbort(options.signal, () => lines.end());
      try {
        const batches = lines.watched(session.query(sql, parameters, options), guarded.mostBetweenBatches);
        yield* limitRows(batches, options.maxRows);
      } catch (error) {
        const known = failure(error, options.signal, 'cancelled');
        const said = known.category === 'failed' ? guarded.explain?.(error) : undefined;
        if (said === undefined) throw known;
        throw new DatasourceFailure('query', undefined, withoutSecrets(said, guarded.secrets));
      } finally {
        stop();
      }
    },
    async close() {
      await cutOff(session.close(), AbortSignal.timeout(CLOSE_MS)).catch(() => {}); // the sockets go anyway
      lines.end();
    },
  };
}

/** All routes of a session. More than `limitBytes` on them ends them. */
function openLines(limitBytes = Number.POSITIVE_INFINITY) {
  const routes: EgressRoute[] = [];
  let ended = false;
  let exceeded: FailureCategory | undefined;
  const received = () => routes.reduce((sum, route) => sum + route.receivedBytes(), 0);
  const end = () => {
    ended = true;
    total[Symbol.dispose]();
    for (const route of routes) route[Symbol.dispose]();
  };
  /** Ends everything when more has come than `most()` says. */
  const watch = (most: () => number, category: FailureCategory) => {
    const look = () => {
      if (received() <= most()) return;
      exceeded ??= category;
      end();
    };
    const timer = most() === Number.POSITIVE_INFINITY ? undefined : setInterval(look, WATCH_MS);
    return { look, [Symbol.dispose]: () => clearInterval(timer) };
  };
  const total = watch(() => limitBytes, 'too_much');
  return {
    add(route: EgressRoute, by: AbortSignal) {
      routes.push(route);
      if (by.aborted || ended) route[Symbol.dispose]();
    },
    end,
    /** Why the lines were ended, if they were for what came on them. */
    exceeded() {
      total.look();
      return exceeded;
    },
    async *watched(batches: AsyncIterable<RowBatch>, mostBetween = Number.POSITIVE_INFINITY) {
      let most = received() + mostBetween;
      const between = watch(() => most, 'row_too_large');
      try {
        for await (const batch of batches) {
          yield batch;
          most = received() + mostBetween;
        }
      } finally {
        between[Symbol.dispose]();
      }
    },
  };
}

/** Settles with the promise, or rejects as soon as the signal aborts; `discard` is given what comes later. */
function cutOff<T>(
  promise: Promise<T>,
  signal: AbortSignal,
  discard: (late: T) => Promise<void> = async () => {},
): Promise<T> {
  return new Promise((done, fail) => {
    const abort = () => {
      fail(signal.reason);
      promise.then(discard).catch(() => {}); // nobody waits for it any more
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(done, fail).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Calls `end` a while after the signal aborts, for what did not end by itself by then; the result calls that off. */
function endingAfterAbort(signal: AbortSignal, end: () => void): () => void {
  let grace: NodeJS.Timeout | undefined;
  const abort = () => {
    grace = setTimeout(end, CANCEL_MS);
  };
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  return () => {
    signal.removeEventListener('abort', abort);
    clearTimeout(grace);
  };
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= 3)
    .reduce((clean, secret) => clean.replaceAll(secret, '[secret]'), text);
}
