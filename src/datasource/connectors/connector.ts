/**
 * A connector: one kind of database, with the schema of its connections and the code that opens one. Connectors call
 * their drivers and do not catch the drivers' errors. This module turns the errors into `DatasourceFailure`, cuts off
 * aborted work even if a driver does not react, and destroys the sockets of a session that ends.
 */
import type { Static, TObject } from 'typebox';
import type { Violation } from '#src/base/errors/errors.ts';
import { SchemaCheck } from '#src/base/json/schema-check.ts';
import { DatasourceFailure, type FailureCategory } from '../failure.ts';
import type { SqlSyntax } from '../query/placeholders.ts';
import type { Parameter } from '../rows.ts';
import { memberViolations, secretMembers } from './connection-members.ts';
import { openGuarded } from './guarded-link.ts';
import type { ConnectorContext, DatabaseLink, LinkOpening, Target } from './link.ts';

/** The members that a connector defines. `S` is the schema of its connections. */
export interface Definition<S extends TObject> {
  readonly kind: string;
  readonly title: string;
  /** Whether the database runs inside this server, on files of the workspace. */
  readonly embedded: boolean;
  readonly schema: S;
  /** Returns where the database is; `null` for embedded ones. */
  target(connection: Static<S>): Target | null;
  open(connection: Static<S>, opening: LinkOpening): Promise<DatabaseLink>;
  /** Most bytes between two batches of rows, for drivers that buffer a whole row of any size. */
  readonly maxBytesBetweenBatches?: number;
  /**
   * Set if the database has no read-only mode. Then only the words of a statement decide whether an agent may run it,
   * so the account of the connection should have no right to write.
   */
  readonly readsByWords?: true;
  /** The quotations and comments of the database, in which `?` is not a placeholder. */
  readonly syntax: SqlSyntax;
  /** Returns the placeholder for the parameter at a position, which starts at 1. */
  placeholder(position: number, parameter: Parameter): string;
  /** Returns violations that the schema cannot express. It is called with connections that match the schema. */
  check?(connection: Static<S>): readonly Violation[];
  /**
   * Returns the category of a driver's error. When it returns `undefined`, the error codes of
   * sockets and TLS decide.
   */
  classify(error: unknown): FailureCategory | undefined;
  /** Returns the database's message if the error is about a statement. */
  explain?(error: unknown): string | undefined;
  /** Returns texts, in addition to the `writeOnly` members, that must be removed from the result of `explain`. */
  secrets?(connection: Static<S>): readonly string[];
}

/** A kind of database, as the rest of the datasource plane uses it. */
export interface Connector
  extends Pick<
    Definition<TObject>,
    'kind' | 'title' | 'embedded' | 'readsByWords' | 'syntax' | 'placeholder'
  > {
  readonly schema: TObject;
  /** Returns the errors of a connection of this kind, at paths below `path`; empty when it is complete. */
  violations(value: unknown, path: string): readonly Violation[];
  target(connection: unknown): Target | null;
  /** Opens a link, which the caller closes. Rejects only with `DatasourceFailure`. `signal` aborts the opening. */
  open(connection: unknown, context: ConnectorContext, signal: AbortSignal): Promise<DatabaseLink>;
}

/** Returns the connector of a definition. Its schema is compiled when it is first used. */
export function defineConnector<S extends TObject>(definition: Definition<S>): Connector {
  const { kind, title, embedded, readsByWords, schema, syntax, placeholder } = definition;
  const check = new SchemaCheck(schema);
  const read = (value: unknown): Static<S> => {
    if (check.matches(value)) return value;
    throw new DatasourceFailure('failed');
  };
  return {
    kind,
    title,
    embedded,
    ...(readsByWords && { readsByWords }),
    schema,
    syntax,
    placeholder,
    violations(value, path) {
      if (!check.matches(value)) return memberViolations(check.errorsOf(value), path);
      const found = definition.check?.(value) ?? [];
      return found.map((violation) => ({ ...violation, path: path + violation.path }));
    },
    target: (value) => definition.target(read(value)),
    async open(value, context, signal) {
      const connection = read(value);
      const secrets = [...secretMembers(schema, connection), ...(definition.secrets?.(connection) ?? [])];
      const { classify, explain, maxBytesBetweenBatches } = definition;
      const open = (opening: LinkOpening) => definition.open(connection, opening);
      return openGuarded(
        {
          open,
          classify,
          ...(explain && { explain }),
          secrets,
          ...(maxBytesBetweenBatches && { maxBytesBetweenBatches }),
        },
        context,
        signal,
      );
    },
  };
}
