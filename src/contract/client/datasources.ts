import type {
  ConnectionTest,
  DatasourceConnection,
  DatasourceReplacement,
  GrantSubject,
  NewDatasource,
} from '../wire/datasource.ts';
import { ApiError, isObject } from './api-error.ts';
import type { Connection, PostOptions, WriteOptions } from './connection.ts';
import { callOf, operation, pagesOf, taggedCallOf } from './operation.ts';

/** Datasources. */
export function datasources(connection: Connection) {
  return {
    ...pagesOf(connection, 'listDatasources'),
    get: callOf(connection, 'getDatasource'),
    getTagged: taggedCallOf(connection, 'getDatasource'),
    create: (datasource: NewDatasource, options: PostOptions = {}) =>
      connection.json(operation('createDatasource', { body: datasource, ...options })),
    replace: (slug: string, body: DatasourceReplacement, options: WriteOptions = {}) =>
      connection.json(operation('replaceDatasource', { params: { slug }, body, ...options })),
    delete: callOf(connection, 'deleteDatasource'),
    /** Resolves also when the test fails: check `ok`. */
    test: (slug: string, options: PostOptions = {}) =>
      tested(callOf(connection, 'testDatasource')(slug, options)),
    testConnection: (tried: DatasourceConnection, options: PostOptions = {}) =>
      tested(connection.json(operation('testConnection', { body: { connection: tried }, ...options }))),
    /** Resolves with the JSON Schema of connections of every kind. */
    schema: callOf(connection, 'getConnectionSchema'),
    grants: callOf(connection, 'listDatasourceGrants'),
    /** Rejects for a subject that is none of `user:<id>`, `role:editor` and `role:viewer`. */
    grant: (slug: string, subject: string, options: PostOptions = {}) =>
      connection.json(
        operation('grantDatasource', {
          params: { slug },
          body: { subject: subject as GrantSubject },
          ...options,
        }),
      ),
    revoke: callOf(connection, 'revokeDatasourceGrant'),
  };
}

async function tested(call: Promise<ConnectionTest>): Promise<ConnectionTest> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ApiError && error.status === 400 && isTest(error.body)) return error.body;
    throw error;
  }
}

function isTest(body: unknown): body is ConnectionTest {
  return isObject(body) && 'ok' in body && 'message' in body;
}
