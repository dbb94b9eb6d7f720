import type { Connection, PostOptions } from './connection.ts';
import { operation } from './operation.ts';

/** The deletion of old records of the server. Needs a token with the scope `server:manage`. */
export function retention(connection: Connection) {
  return {
    /** Says that the clock of the server is right, so that old records are deleted again. */
    confirmClock: (options: PostOptions = {}) =>
      connection.json(operation('confirmClock', { body: {}, ...options })),
  };
}
