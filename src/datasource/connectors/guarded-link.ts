/**
 * Wraps the sessions of connectors. It turns errors of drivers into `DatasourceFailure` and drops the rest of them.
 * It cuts off work that does not end in time, and destroys all sockets of a session that is closed.
 */

import { untilAborted } from '#src/base/async/until-aborted.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import type { EgressRoute } from '../egress/egress-route.ts';
import { categoryOfSocketError, DatasourceFailure, type FailureCategory } from '../failure.ts';
import { cutNames, limitRows, type RowBatch } from '../rows.ts';
import type { ConnectorContext, DatabaseLink, LinkOpening, Target } from './link.ts';

/** The parts of a connector that the guard calls. */
export interface Guarded {
  open(opening: LinkOpening): Promise<DatabaseLink>;
  classify(error: unknown): FailureCategory | undefined;
  explain?(error: unknown): string | undefined;
  /** Texts that are removed from the result of `explain`. */
  readonly secrets: readonly string[];
  /** Most bytes between two batches of rows; no limit when unset. */
  readonly maxBytesBetweenBatches?: number;
}

/** Most characters of a database's message about a statement. */
const MAX_MESSAGE_CHARS = 10_000;
const CLOSE_MS = 1000;
const CANCEL_MS = 2000;
const RESET_MS = 2000;
const WATCH_MS = 20;

/** Opens a link. This call and the link reject only with `DatasourceFailure`. */
export async function openGuarded(
  guarded: Guarded,
  { egress, limitBytes, ...rest }: ConnectorContext,
  signal: AbortSignal,
): Promise<DatabaseLink> {
  const routes = openRoutes(limitBytes);
  const connectTo = async ({ host, port }: Target, by = signal) => {
    const route = await egress.admit(host, port, by);
    routes.add(route, by);
    return route;
  };
  const failure = (error: unknown, by: AbortSignal, aborted: FailureCategory) => {
    const exceeded = routes.exceeded();
    if (exceeded !== undefined) return new DatasourceFailure(exceeded);
    if (error instanceof DatasourceFailure) return error;
    if (by.aborted) return new DatasourceFailure(aborted);
    return new DatasourceFailure(guarded.classify(error) ?? categoryOfSocketError(error) ?? 'failed');
  };
  let link: DatabaseLink;
  try {
    const opening = guarded.open({ connectTo, signal, ...rest });
    link = await untilAborted(opening, signal, { discard: (late) => late.close() });
  } catch (error) {
    routes.end();
    throw failure(error, signal, 'timeout');
  }
  const reset = link.reset?.bind(link);
  const mayWrite = link.mayWrite?.bind(link);
  return {
    ...(link.lost && { lost: link.lost }),
    ...(link.isSingleUse && { isSingleUse: true }),
    ...(reset && {
      async reset() {
        const by = AbortSignal.timeout(RESET_MS);
        try {
          await untilAborted(reset(), by);
        } catch (error) {
          throw failure(error, by, 'timeout');
        }
      },
    }),
    async probe(by) {
      try {
        await untilAborted(link.probe(by), by);
      } catch (error) {
        throw failure(error, by, 'timeout');
      }
    },
    ...(mayWrite && {
      async mayWrite(by) {
        try {
          return await untilAborted(mayWrite(by), by);
        } catch (error) {
          throw failure(error, by, 'timeout');
        }
      },
    }),
    async *query(sql, parameters, options) {
      const stop = endingAfterAbort(options.signal, () => routes.end());
      try {
        const batches = routes.watched(link.query(sql, parameters, options), guarded.maxBytesBetweenBatches);
        yield* limitRows(cutNames(batches), options.maxRows);
      } catch (error) {
        const known = failure(error, options.signal, 'cancelled');
        const said = known.category === 'failed' ? guarded.explain?.(error) : undefined;
        if (said === undefined) throw known;
        throw new DatasourceFailure('query', undefined, shortened(withoutSecrets(said, guarded.secrets)));
      } finally {
        stop();
      }
    },
    async close() {
      await untilAborted(link.close(), AbortSignal.timeout(CLOSE_MS)).catch(() => {}); // its sockets are destroyed in any case
      routes.end();
    },
  };
}

/** Holds all routes of a link. Receiving more than `limitBytes` ends them. */
function openRoutes(limitBytes = Number.POSITIVE_INFINITY) {
  const routes: EgressRoute[] = [];
  let ended = false;
  let exceeded: FailureCategory | undefined;
  const received = () => routes.reduce((sum, route) => sum + route.receivedBytes(), 0);
  const end = () => {
    ended = true;
    total[Symbol.dispose]();
    for (const route of routes) route[Symbol.dispose]();
  };
  /** Ends all routes when they have received more bytes than `most()` returns. */
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
    /** Returns the category if the routes were ended because too many bytes were received. */
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

/** Calls `end` some time after the signal aborts, if the work has not ended by then. Returns a function that disarms it. */
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

/** Returns the beginning of a text that is too long for a message. */
function shortened(text: string): string {
  return text.length > MAX_MESSAGE_CHARS ? `${cutText(text, 0, MAX_MESSAGE_CHARS)}…` : text;
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= 3)
    .reduce((clean, secret) => clean.replaceAll(secret, '[secret]'), text);
}
