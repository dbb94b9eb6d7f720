import { ApiError } from './api-error.ts';
import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { eachItem, type Page, type PageOptions } from './paging.ts';

export interface Datasource {
  readonly id: string;
  readonly slug: string;
  readonly kind: string;
  readonly name: string | null;
  readonly revision: number;
  readonly configured: boolean;
  readonly embedded: boolean;
}

/** A complete connection: `kind`, and the members that the connection schema gives for it. */
export type DatasourceConnection = Readonly<Record<string, unknown>>;

export interface DatasourceFields {
  readonly name?: string | null;
  readonly connection: DatasourceConnection;
  /** Test before saving; a failed test saves nothing. */
  readonly testConnection?: boolean;
}

export interface ConnectionTest {
  readonly ok: boolean;
  readonly message: string;
  readonly elapsedMs: number;
}

export interface DatasourceGrant {
  /** `user:<id>`, `role:editor` or `role:viewer`. */
  readonly subject: string;
  readonly grantedBy: string;
  readonly createdAt: string;
}

export interface Key {
  readonly id: string;
  readonly active: boolean;
  readonly sealed: number;
}

const ROOT = '/api/v3/datasources';

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
    create: (datasource: DatasourceFields & { readonly slug: string }, options: PostOptions = {}) =>
      post<Datasource>(ROOT, datasource, options),
    replace: (slug: string, body: DatasourceFields, options: RequestOptions = {}) =>
      connection.json<Datasource>({ method: 'PUT', path: ROOT + path`/${slug}`, body, ...options }),
    delete: (slug: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: ROOT + path`/${slug}`, ...options }),
    /** A test that failed is an answer, too. */
    test: (slug: string, options: PostOptions = {}) =>
      tested(post<ConnectionTest>(ROOT + path`/${slug}/test`, {}, options)),
    testConnection: (tried: DatasourceConnection, options: PostOptions = {}) =>
      tested(post<ConnectionTest>('/api/v3/datasource-connections/test', { connection: tried }, options)),
    /** The JSON Schema of connections of every kind. */
    schema: (options: RequestOptions = {}) =>
      connection.json<object>({ method: 'GET', path: '/api/v3/datasource-connections/schema', ...options }),
    grants: (slug: string, options: RequestOptions = {}) =>
      connection.json<{ readonly items: readonly DatasourceGrant[] }>({
        method: 'GET',
        path: ROOT + path`/${slug}/grants`,
        ...options,
      }),
    share: (slug: string, subject: string, options: PostOptions = {}) =>
      post<DatasourceGrant>(ROOT + path`/${slug}/grants`, { subject }, options),
    unshare: (slug: string, subject: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: ROOT + path`/${slug}/grants/${subject}`, ...options }),
  };
}

/** The keyring of the server, never a key's value. */
export function keys(connection: Connection) {
  return {
    list: (options: RequestOptions = {}) =>
      connection.json<{ readonly items: readonly Key[] }>({
        method: 'GET',
        path: '/api/v3/keys',
        ...options,
      }),
    /** Makes a new key, which seals from now on. */
    add: (options: PostOptions = {}) =>
      connection.json<{ readonly items: readonly Key[] }>({
        method: 'POST',
        path: '/api/v3/keys',
        body: {},
        ...options,
      }),
    /** Makes a new key and seals everything with it. */
    rotate: (options: PostOptions = {}) =>
      connection.json<{ readonly items: readonly Key[] }>({
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
