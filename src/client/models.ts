import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';

export interface ModelProvider {
  /** Model ids are `provider/model`. */
  readonly provider: string;
  readonly usable: boolean;
  readonly source: 'workspace' | 'settings' | null;
  /** Known without asking the provider. */
  readonly models: readonly string[];
}

export interface ModelTest {
  readonly ok: boolean;
  readonly model: string;
  readonly message: string;
  readonly elapsedMs: number;
}

/** What agents can be answered by. */
export function models(connection: Connection) {
  return {
    list: (options: RequestOptions = {}) =>
      connection.json<{ readonly defaultModel: string | null; readonly items: readonly ModelProvider[] }>({
        method: 'GET',
        path: '/api/v3/models',
        ...options,
      }),
    /** Asks a model, or the default one, for one word. */
    test: (model?: string, options: PostOptions = {}) =>
      connection.json<ModelTest>({
        method: 'POST',
        path: '/api/v3/models/test',
        body: model === undefined ? {} : { model },
        ...options,
      }),
    /** A key of the workspace's own; it is never read back. */
    setKey: (provider: string, key: string, options: RequestOptions = {}) =>
      connection.json<{
        readonly provider: string;
        readonly updatedBy: string;
        readonly updatedAt: string;
      }>({
        method: 'PUT',
        path: path`/api/v3/models/keys/${provider}`,
        body: { key },
        ...options,
      }),
    deleteKey: (provider: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: path`/api/v3/models/keys/${provider}`, ...options }),
  };
}
