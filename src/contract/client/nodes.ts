import type { Connection, PostOptions, RequestOptions } from './connection.ts';
import { operation } from './operation.ts';

/** The kernel nodes of the server. Changes need a token with the scope `server:manage`. */
export function nodes(connection: Connection) {
  return {
    /** Needs the scope `server:observe` or `server:manage`. */
    list: (options: RequestOptions = {}) => connection.json(operation('listNodes', options)),
    /** Makes an invitation for one machine. */
    invite: (options: PostOptions = {}) => connection.json(operation('inviteNode', { body: {}, ...options })),
    /** Decides whether a node gets new kernels. */
    drain: (node: string, draining: boolean, options: RequestOptions = {}) =>
      connection.json(operation('changeNode', { params: { node }, body: { draining }, ...options })),
    /** Ends the kernels of a node, which needs a new invitation to join again. */
    remove: (node: string, options: RequestOptions = {}) =>
      connection.json(operation('removeNode', { params: { node }, ...options })),
  };
}
