/**
 * One kind of database: the schema of its connections and how to open one. Connectors speak to their drivers and throw
 * what these throw; here it becomes a `DatasourceFailure`, aborted work is cut even where a driver does not listen, and
 * every socket is destroyed with its session.
 */
import type { Static, TObject } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Violation } from '#src/core/errors.ts';
import { memberViolations, secretMembers } from './connection-members.ts';
import type { DriverLoader } from './drivers.ts';
import type { Egress } from './egress.ts';
import { categoryOfSocketError, DatasourceFailure, type FailureCategory } from './failure.ts';
import type { Route } from './route.ts';
import { limitRows, type Parameter, type QueryOptions, type RowBatch } from './rows.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** One open connection. It runs one query at a time. */
export interface Session {
  /** Resolves when the database answers and what the connection names is there. */
  probe(signal: AbortSignal): Promise<void>;
  /** Runs one statement with positional parameters, written as `placeholder` of the connector says. */
  query(sql: string, parameters: readonly Parameter[], options: QueryOptions): AsyncIterable<RowBatch>;
  /** Idempotent; settles soon, whatever the database does. */
  close(): Promise<void>;
}

/** What opening a connection needs from outside. */
export interface ConnectorContext {
  readonly egress: Egress;
  /** Files of the workspace, for databases that are files. */
  readonly filesDirectory: string;
  /** Drivers that are not part of the installation. */
  readonly drivers: DriverLoader;
  /** Most bytes that may be received, for probes; unset is no limit. */
  readonly limitBytes?: number;
}

/** What a connector is given to open with. */
export interface Opening extends Omit<ConnectorContext, 'egress' | 'limitBytes'> {
  /** A judged way to a server; it lasts as long as the session. */
  reach(target: Target): Promise<Route>;
  /** Aborts when opening takes too long. */
  readonly signal: AbortSignal;
}

interface Definition<S extends TObject> {
  readonly kind: string;
  readonly title: string;
  /** Runs inside this server, on files of the workspace. */
  readonly embedded: boolean;
  readonly schema: S;
  /** Where the database is; `null` for embedded ones. */
  target(connection: Static<S>): Target | null;
  open(connection: Static<S>, opening: Opening): Promise<Session>;
  /** How the parameter at a position, from 1, is written in a statement. */
  placeholder(position: number, parameter: Parameter): string;
  /** What the schema cannot say. Called with connections that fit the schema. */
  check?(connection: Static<S>): readonly Violation[];
  /** Category of an error of the driver; `undefined` leaves it to the codes of sockets and TLS. */
  classify(error: unknown): FailureCategory | undefined;
  /** What the database says of a statement, when the error is about that. */
  explain?(error: unknown): string | undefined;
  /** Further texts that `explain` must not give away, beside the `writeOnly` members. */
  secrets?(connection: Static<S>): readonly string[];
}

export interface Connector extends Pick<Definition<TObject>, 'kind' | 'title' | 'embedded' | 'placeholder'> {
  readonly schema: TObject;
  /** What is wrong with a connection of this kind, with paths from `path`; nothing when it is complete. */
  violations(value: unknown, path: string): readonly Violation[];
  target(connection: unknown): Target | null;
  /** The caller closes the session. Rejects with `DatasourceFailure` only. `signal` ends the opening. */
  open(connection: unknown, context: ConnectorContext, signal: AbortSignal): Promise<Session>;
}

export function defineConnector<S extends TObject>(definition: Definition<S>): Connector {
  const { kind, title, embedded, schema, placeholder } = definition;
  const validator = Compile(schema);
  const read = (value: unknown): Static<S> => {
    if (validator.Check(value)) return value;
    throw new DatasourceFailure('failed');
  };
  return {
    kind,
    title,
    embedded,
    schema,
    placeholder,
    violations(value, path) {
      if (!validator.Check(value)) return memberViolations(validator.Errors(value), path);
      const found = definition.check?.(value) ?? [];
      return found.map((violation) => ({ ...violation, path: path + violation.path }));
    },
    target: (value) => definition.target(read(value)),
    async open(value, context, signal) {
      const connection = read(value);
      const secrets = [...secretMembers(schema, connection), ...(definition.secrets?.(connection) ?? [])];
      const routes: Route[] = [];
      const bytes = watchBytes(routes, context.limitBytes);
      const end = () => {
        bytes.stop();
        for (const route of routes) route[Symbol.dispose]();
      };
      const failure = (error: unknown, by: AbortSignal, aborted: FailureCategory) => {
        if (error instanceof DatasourceFailure) return error;
        if (bytes.exceeded()) return new DatasourceFailure('too_much');
        if (by.aborted) return new DatasourceFailure(aborted);
        return new DatasourceFailure(definition.classify(error) ?? categoryOfSocketError(error) ?? 'failed');
      };
      const reach = async ({ host, port }: Target) => {
        const route = await context.egress.admit(host, port, signal);
        routes.push(route);
        if (signal.aborted) route[Symbol.dispose]();
        return route;
      };
      const { filesDirectory, drivers } = context;
      let session: Session;
      try {
        const opening = definition.open(connection, { reach, signal, filesDirectory, drivers });
        session = await cutOff(opening, signal, (late) => late.close());
      } catch (error) {
        end();
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
          try {
            yield* limitRows(session.query(sql, parameters, options), options.maxRows);
          } catch (error) {
            const known = failure(error, options.signal, 'cancelled');
            const said = known.category === 'failed' ? definition.explain?.(error) : undefined;
            if (said === undefined) throw known;
            throw new DatasourceFailure('query', undefined, withoutSecrets(said, secrets));
          }
        },
        async close() {
          await cutOff(session.close(), AbortSignal.timeout(CLOSE_MS)).catch(() => {}); // the sockets go anyway
          end();
        },
      };
    },
  };
}

const CLOSE_MS = 1000;
const WATCH_MS = 20;

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

/** Cuts all routes when more than `limit` bytes came in. */
function watchBytes(routes: readonly Route[], limit = Number.POSITIVE_INFINITY) {
  const exceeded = () => routes.reduce((sum, route) => sum + route.receivedBytes(), 0) > limit;
  const timer = setInterval(() => {
    if (exceeded()) for (const route of routes) route[Symbol.dispose]();
  }, WATCH_MS);
  if (limit === Number.POSITIVE_INFINITY) clearInterval(timer);
  return { exceeded, stop: () => clearInterval(timer) };
}

function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets
    .filter((secret) => secret.length >= 3)
    .reduce((clean, secret) => clean.replaceAll(secret, '[secret]'), text);
}
