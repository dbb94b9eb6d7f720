/** The common types of connectors and the code around them: an open connection, and the context for opening one. */
import type { Egress } from '../egress/egress.ts';
import type { EgressRoute } from '../egress/egress-route.ts';
import type { Engines } from '../embedded/engines.ts';
import type { Parameter, QueryOptions, RowBatch } from '../rows.ts';
import type { DriverLoader } from './drivers.ts';

/** A host and a port to connect to. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

/** One open connection. It runs one query at a time. */
export interface DatabaseLink {
  /**
   * Resolves when the connection is lost. Absent for databases that are reached by HTTP, where each request can open
   * a new connection.
   */
  readonly lost?: Promise<void>;
  /** Resolves when the database answers and everything that the connection names exists. */
  probe(signal: AbortSignal): Promise<void>;
  /**
   * Resolves with the database's answer to whether the account may change anything in it; undefined when there is no
   * answer. Absent for kinds of databases that cannot answer.
   */
  mayWrite?(signal: AbortSignal): Promise<boolean | undefined>;
  /**
   * Runs one statement. The statement's positional parameters are written in the form that the
   * connector's `placeholder` returns.
   */
  query(sql: string, parameters: readonly Parameter[], options: QueryOptions): AsyncIterable<RowBatch>;
  /**
   * Restores the state in which the connection was opened: settings, locks, temporary tables, user
   * and database. Rejects when the database cannot do that. Absent where statements leave no
   * traces.
   */
  reset?(): Promise<void>;
  /**
   * Set where the traces of a statement on its connection cannot be removed. Such a connection runs
   * only one statement.
   */
  readonly isSingleUse?: boolean;
  /** Closes the connection. Idempotent; resolves or rejects within a short time, for any behaviour of the database. */
  close(): Promise<void>;
}

/** The context in which a connector opens a connection. */
export interface ConnectorContext {
  readonly egress: Egress;
  /**
   * Returns the directory of the workspace's files, and makes it if necessary. Only embedded
   * databases may need the directory.
   */
  readonly filesDirectory: () => string;
  /** The processes that run embedded databases. */
  readonly engines: Engines;
  /** Loads drivers that are not part of the installation. */
  readonly drivers: DriverLoader;
  /** Most bytes that probes may receive; no limit when unset. */
  readonly limitBytes?: number;
}

/** The parameters for opening one connection. */
export interface LinkOpening extends Omit<ConnectorContext, 'egress' | 'limitBytes'> {
  /**
   * Checks a target and returns a route that lasts as long as the session. `by` aborts the check, or `signal` when
   * `by` is absent.
   */
  connectTo(target: Target, by?: AbortSignal): Promise<EgressRoute>;
  /** Aborts when opening takes too long. It has no effect once the link is open. */
  readonly signal: AbortSignal;
}
