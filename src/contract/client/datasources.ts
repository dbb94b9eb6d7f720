import type {
  ConnectionTest,
  DatasourceConnection,
  DatasourceReplacement,
  GrantSubject,
  NewDatasource,
} from '../wire/datasource.ts';
import { ApiError, isObject } from './api-error.ts';
import type { Connection, PostOptions, ReadOptions, RequestOptions, WriteOptions } from './connection.ts';
import { operation } from './operation.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** Datasources. */
export function datasources(connection: Connection) {
  const list = ({ after, limit, signal }: PageOptions = {}) =>
    connection.json(operation('listDatasources', { query: { after, limit }, signal }));
  return {
    list,
    each: (options: PageOptions = {}) => eachItem(list, options),
    get: (slug: string, options: RequestOptions = {}) =>
      connection.json(operation('getDatasource', { params: { slug }, ...options })),
    getTagged: (slug: string, options: ReadOptions = {}) =>
      connection.tagged(operation('getDatasource', { params: { slug }, ...options })),
    create: (datasource: NewDatasource, options: PostOptions = {}) =>
      connection.json(operation('createDatasource', { body: datasource, ...options })),
    replace: (slug: string, body: DatasourceReplacement, options: WriteOptions = {}) =>
      connection.json(operation('replaceDatasource', { params: { slug }, body, ...options })),
    delete: (slug: string, options: WriteOptions = {}) =>
      connection.json(operation('deleteDatasource', { params: { slug }, ...options })),
    /** Resolves also when the test fails: check `ok`. */
    test: (slug: string, options: PostOptions = {}) =>
      tested(connection.json(operation('testDatasource', { params: { slug }, body: {}, ...options }))),
    testConnection: (tried: DatasourceConnection, options: PostOptions = {}) =>
      tested(connection.json(operation('testConnection', { body: { connection: tried }, ...options }))),
    /** Resolves with the JSON Schema of connections of every kind. */
    schema: (options: RequestOptions = {}) => connection.json(operation('getConnectionSchema', options)),
    grants: (slug: string, options: RequestOptions = {}) =>
      connection.json(operation('listDatasourceGrants', { params: { slug }, ...options })),
    /** Rejects for a subject that is none of `user:<id>`, `role:editor` and `role:viewer`. */
    grant: (slug: string, subject: string, options: PostOptions = {}) =>
      connection.json(
        operation('grantDatasource', {
          params: { slug },
          body: { subject: subject as GrantSubject },
          ...options,
        }),
      ),
    revoke: (slug: string, subject: string, options: RequestOptions = {}) =>
      connection.json(operation('revokeDatasourceGrant', { params: { slug, subject }, ...options })),
  };
}

/** The keyring of the server. The values of its keys are never returned. */
export function keys(connection: Connection) {
  return {
    list: (options: RequestOptions = {}) => connection.json(operation('listKeys', options)),
    /** Adds a key, which encrypts new connections. */
    add: (options: PostOptions = {}) => connection.json(operation('addKey', { body: {}, ...options })),
    /** Deletes a key that encrypts nothing any more: backups that need it are then of no use with this keyring. */
    delete: (keyId: string, options: RequestOptions = {}) =>
      connection.json(operation('deleteKey', { params: { keyId }, ...options })),
    /** Adds a key and encrypts all connections with it. The earlier keys stay for backups. */
    rotate: (options: PostOptions = {}) => connection.json(operation('rotateKeys', { body: {}, ...options })),
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
