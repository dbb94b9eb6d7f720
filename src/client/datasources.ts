import type {
  ConnectionTest,
  Datasource,
  DatasourceConnection,
  DatasourceGrant,
  DatasourceGrantList,
  DatasourceReplacement,
  NewDatasource,
} from '#src/wire/datasource.ts';
import type { KeyList } from '#src/wire/health.ts';
import type { Page } from '#src/wire/shape.ts';
import { ApiError } from './api-error.ts';
import {
  type Connection,
  type PostOptions,
  path,
  type ReadOptions,
  type RequestOptions,
  type WriteOptions,
} from './connection.ts';
import { eachItem, type PageOptions } from './paging.ts';

const ROOT = '/api/v3/datasources';

/** Datasources. */
export function datasources(connection: Connection) {
  const list = ({ after, limit, signal }: PageOptions = {}) =>
    connection.json<Page<Datasource>>({ method: 'GET', path: ROOT, query: { after, limit }, signal });
  const post = <T>(at: string, body: unknown, options: PostOptions) =>
    connection.json<T>({ method: 'POST', path: at, body, ...options });
  return {
    list,
    each: (options: PageOptions = {}) => eachItem(list, options),
    get: (slug: string, options: RequestOptions = {}) =>
      connection.json<Datasource>({ method: 'GET', path: ROOT + path`/${slug}`, ...options }),
    getTagged: (slug: string, options: ReadOptions = {}) =>
      connection.tagged<Datasource>({ method: 'GET', path: ROOT + path`/${slug}`, ...options }),
    create: (datasource: NewDatasource, options: PostOptions = {}) =>
      post<Datasource>(ROOT, datasource, options),
    replace: (slug: string, body: DatasourceReplacement, options: WriteOptions = {}) =>
      connection.json<Datasource>({ method: 'PUT', path: ROOT + path`/${slug}`, body, ...options }),
    delete: (slug: string, options: WriteOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: ROOT + path`/${slug}`, ...options }),
    /** Resolves also when the test fails: check `ok`. */
    test: (slug: string, options: PostOptions = {}) =>
      tested(post<ConnectionTest>(ROOT + path`/${slug}/test`, {}, options)),
    testConnection: (tried: DatasourceConnection, options: PostOptions = {}) =>
      tested(post<ConnectionTest>('/api/v3/datasource-connections/test', { connection: tried }, options)),
    /** Resolves with the JSON Schema of connections of every kind. */
    schema: (options: RequestOptions = {}) =>
      connection.json<object>({ method: 'GET', path: '/api/v3/datasource-connections/schema', ...options }),
    grants: (slug: string, options: RequestOptions = {}) =>
      connection.json<DatasourceGrantList>({
        method: 'GET',
        path: ROOT + path`/${slug}/grants`,
        ...options,
      }),
    grant: (slug: string, subject: string, options: PostOptions = {}) =>
      post<DatasourceGrant>(ROOT + path`/${slug}/grants`, { subject }, options),
    revoke: (slug: string, subject: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: ROOT + path`/${slug}/grants/${subject}`, ...options }),
  };
}

/** The keyring of the server. The values of its keys are never returned. */
export function keys(connection: Connection) {
  return {
    list: (options: RequestOptions = {}) =>
      connection.json<KeyList>({
        method: 'GET',
        path: '/api/v3/keys',
        ...options,
      }),
    /** Adds a key, which encrypts new connections. */
    add: (options: PostOptions = {}) =>
      connection.json<KeyList>({
        method: 'POST',
        path: '/api/v3/keys',
        body: {},
        ...options,
      }),
    /** Deletes a key that encrypts nothing any more: backups that need it are then of no use with this keyring. */
    delete: (keyId: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: path`/api/v3/keys/${keyId}`, ...options }),
    /** Adds a key and encrypts all connections with it. The earlier keys stay for backups. */
    rotate: (options: PostOptions = {}) =>
      connection.json<KeyList>({
        method: 'POST',
        path: '/api/v3/keys/rotate',
        body: {},
        ...options,
      }),
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
  return typeof body === 'object' && body !== null && 'ok' in body && 'message' in body;
}
