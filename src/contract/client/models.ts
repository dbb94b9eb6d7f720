import { type Connection, type PostOptions, present, type RequestOptions } from './connection.ts';
import { operation } from './operation.ts';

/** The models that agents can use. */
export function models(connection: Connection) {
  return {
    list: (options: RequestOptions = {}) => connection.json(operation('listModels', options)),
    /** Tests a model, or the default one, by asking it for one word. */
    test: (model?: string, options: PostOptions = {}) =>
      connection.json(operation('testModel', { body: present({ model }), ...options })),
    /** Sets the workspace's own API key for a provider. It is never returned. */
    setKey: (provider: string, key: string, options: RequestOptions = {}) =>
      connection.json(operation('setModelKey', { params: { provider }, body: { key }, ...options })),
    deleteKey: (provider: string, options: RequestOptions = {}) =>
      connection.json(operation('deleteModelKey', { params: { provider }, ...options })),
  };
}
