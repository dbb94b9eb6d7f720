/**
 * What stands between a connector and everybody else: errors of drivers become `DatasourceFailure` and are forgotten,
 * what does not end when it should is cut off, and every socket goes with its session.
 */
import type { ConnectorContext, Opening, Session, Target } from './connector.ts';
import { categoryOfSocketError, DatasourceFailure, type FailureCategory } from './failure.ts';
import type { Route } from './route.ts';
import { limitRows } from './rows.ts';

export interface Guarded {
  open(opening: Opening): Promise<Session>;
  classify(error: unknown): FailureCategory | undefined;
  explain?(error: unknown): string | undefined;
  /** Texts that `explain` must not give away. */
  readonly secrets: readonly string[];
}

const CLOSE_MS = 1000;
const CANCEL_MS = 2000;
const WATCH_MS = 20;

/** Rejects with `DatasourceFailure` only, and so does the session. */
export async function openGuarded(
  guarded: Guarded,
  { egress, limitBytes, filesDirectory, drivers }: ConnectorContext,
  signal: AbortSignal,
): Promise<Session> {
  const lines = openLines(limitBytes);
  const reach = async ({ host, port }: Target, by = signal) => {
    const route = await egress.admit(host, port, by);
    lines.add(route, by);
    return route;
  };
  const failure = (error: unknown, by: AbortSignal, aborted: FailureCategory) => {
    if (lines.exceeded()) return new DatasourceFailure('too_much');
    if (error instanceof DatasourceFailure) return error;
    if (by.aborted) return new DatasourceFailure(aborted);
    return new DatasourceFailure(guarded.classify(error) ?? categoryOfSocketError(error) ?? 'failed');
  };
  let session: Session;
  try {
    const opening = guarded.open({ reach, signal, filesDirectory, drivers });
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
        yield* limitRows(session.query(sql, parameters, options), options.maxRows);
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
  const routes: Route[] = [];
  let ended = false;
  const exceeded = () => routes.reduce((sum, route) => sum + route.receivedBytes(), 0) > limitBytes;
  const end = () => {
    ended = true;
    clearInterval(timer);
    for (const route of routes) route[Symbol.dispose]();
  };
  const watch = () => {
    if (exceeded()) end();
  };
  const timer = limitBytes === Number.POSITIVE_INFINITY ? undefined : setInterval(watch, WATCH_MS);
  const add = (route: Route, by: AbortSignal) => {
    routes.push(route);
    if (by.aborted || ended) route[Symbol.dispose]();
  };
  return { add, end, exceeded };
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
