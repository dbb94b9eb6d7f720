import type { ModelKey, ModelList, ModelTest } from '#src/wire/models.ts';
import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';

/** The models that agents can use. */
export function models(connection: Connection) {
  return {
    list: (options: RequestOptions = {}) =>
      connection.json<ModelList>({
        method: 'GET',
        path: '/api/v3/models',
        ...options,
      }),
    /** Tests a model, or the default one, by asking it for one word. */
    test: (model?: string, options: PostOptions = {}) =>
      connection.json<ModelTest>({
        method: 'POST',
        path: '/api/v3/models/test',
        body: model === undefined ? {} : { model },
        ...options,
      }),
    /** Sets the workspace's own API key for a provider. It is never returned. */
    setKey: (provider: string, key: string, options: RequestOptions = {}) =>
      connection.json<ModelKey>({
        method: 'PUT',
        path: path`/api/v3/models/keys/${provider}`,
        body: { key },
        ...options,
      }),
    deleteKey: (provider: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: path`/api/v3/models/keys/${provider}`, ...options }),
  };
}
