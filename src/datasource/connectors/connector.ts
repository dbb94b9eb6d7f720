/**
 * One kind of database: the schema of its connections and how to open one. Connectors speak to their drivers and throw
 * what these throw; here it becomes a `DatasourceFailure`, aborted work is cut even where a driver does not listen, and
 * every socket is destroyed with its session.
 */
import type { Static, TObject } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Violation } from '#src/core/errors.ts';
import type { Egress } from '../egress/egress.ts';
import type { EgressRoute } from '../egress/egress-route.ts';
import type { Engines } from '../embedded/engines.ts';
import { DatasourceFailure, type FailureCategory } from '../failure.ts';
import type { Parameter, QueryOptions, RowBatch } from '../rows.ts';
import { memberViolations, secretMembers } from './connection-members.ts';
import type { DriverLoader } from './drivers.ts';
import { openGuarded } from './guarded-session.ts';

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
  /** Processes for databases that are files. */
  readonly engines: Engines;
  /** Drivers that are not part of the installation. */
  readonly drivers: DriverLoader;
  /** Most bytes that may be received, for probes; unset is no limit. */
  readonly limitBytes?: number;
}

/** What a connector is given to open with. */
export interface Opening extends Omit<ConnectorContext, 'egress' | 'limitBytes'> {
  /** A judged way to a server; it lasts as long as the session. `by` ends the judging, `signal` when unset. */
  connectTo(target: Target, by?: AbortSignal): Promise<EgressRoute>;
  /** Aborts when opening takes too long; means nothing once the session is open. */
  readonly signal: AbortSignal;
}

export interface Definition<S extends TObject> {
  readonly kind: string;
  readonly title: string;
  /** Runs inside this server, on files of the workspace. */
  readonly embedded: boolean;
  readonly schema: S;
  /** Where the database is; `null` for embedded ones. */
  target(connection: Static<S>): Target | null;
  open(connection: Static<S>, opening: Opening): Promise<Session>;
  /** Most bytes that may come between two batches of rows, for drivers that gather a row of any size. */
  readonly mostBetweenBatches?: number;
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
  const compile = () => Compile(schema);
  let compiled: ReturnType<typeof compile> | undefined;
  const isConnection = (value: unknown): value is Static<S> => {
    compiled ??= compile();
    return compiled.Check(value);
  };
  const read = (value: unknown): Static<S> => {
    if (isConnection(value)) return value;
    throw new DatasourceFailure('failed');
  };
  return {
    kind,
    title,
    embedded,
    schema,
    placeholder,
    violations(value, path) {
      if (!isConnection(value)) return memberViolations((compiled ?? compile()).Errors(value), path);
      const found = definition.check?.(value) ?? [];
      return found.map((violation) => ({ ...violation, path: path + violation.path }));
    },
    target: (value) => definition.target(read(value)),
    async open(value, context, signal) {
      const connection = read(value);
      const secrets = [...secretMembers(schema, connection), ...(definition.secrets?.(connection) ?? [])];
      const { classify, explain, mostBetweenBatches } = definition;
      const open = (opening: Opening) => definition.open(connection, opening);
      return openGuarded(
        {
          open,
          classify,
          ...(explain && { explain }),
          secrets,
          ...(mostBetweenBatches && { mostBetweenBatches }),
        },
        context,
        signal,
      );
    },
  };
}
