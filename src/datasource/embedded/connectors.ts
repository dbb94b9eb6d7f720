import { Type } from 'typebox';
import type { Violation } from '#src/base/errors/errors.ts';
import type { EngineKind } from '#src/confined/processes/children/engine-process.ts';
import { type Connector, defineConnector } from '../connectors/connector.ts';
import { POSTGRES_SYNTAX, SQLITE_SYNTAX } from '../query/placeholders.ts';
import { embeddedLink } from './embedded-link.ts';

function pathMember(description: string, example: string) {
  return Type.String({ title: 'Path', description, minLength: 1, maxLength: 1024, examples: [example] });
}

/** Returns the errors of a path. The engine checks links when it opens the file. */
function checkPath(path: string): readonly Violation[] {
  const parts = path.split('/');
  const isInside =
    !path.startsWith('/') && !parts.includes('..') && !/[\\\p{Cc}]/u.test(path) && !/^[a-z]+:/i.test(path);
  return isInside
    ? []
    : [{ path: '/path', message: 'must be a relative path inside the files of the workspace' }];
}

interface Words {
  readonly title: string;
  readonly description: string;
  readonly path: string;
  readonly example: string;
}

export const duckdb = embeddedConnector('duckdb', {
  title: 'DuckDB',
  description: 'A DuckDB database that is a file of the workspace. It is read, never written.',
  path: 'The database file, from the folder of the workspace’s files. It must exist.',
  example: 'sales.duckdb',
});

export const sqlite = embeddedConnector('sqlite', {
  title: 'SQLite',
  description: 'A SQLite database that is a file of the workspace.',
  path: 'The database file, from the folder of the workspace’s files. It must exist.',
  example: 'sales.sqlite',
});

export const filesConnector = embeddedConnector('files', {
  title: 'Files',
  description:
    'Data files of the workspace (CSV, TSV, JSON, JSON lines, Parquet; the text formats also with .gz). Each is a table that is named for its file: without folders and ending where that name is free.',
  path: 'A folder or one file, from the folder of the workspace’s files; `.` is all of them. It must exist.',
  example: 'data',
});

function embeddedConnector<K extends EngineKind>(
  kind: K,
  { title, description, path, example }: Words,
): Connector {
  return defineConnector({
    kind,
    title,
    embedded: true,
    schema: Type.Object(
      { kind: Type.Literal(kind), path: pathMember(path, example) },
      { title, description, additionalProperties: false, examples: [{ kind, path: example }] },
    ),
    check: (connection) => checkPath(connection.path),
    target: () => null,
    open: async (connection, { filesDirectory, engines }) =>
      embeddedLink({ kind, filesDirectory: filesDirectory(), path: connection.path }, engines),
    syntax: kind === 'sqlite' ? SQLITE_SYNTAX : POSTGRES_SYNTAX,
    placeholder: () => '?',
    classify: () => undefined,
  });
}
