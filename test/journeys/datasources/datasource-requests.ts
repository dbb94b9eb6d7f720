/** Requests for datasources, and the datasources that they name. */
import type { RawAnswer } from '#test/support/raw-request.ts';
import type { TestServer } from '#test/support/server-fixture.ts';

export const LISTED = '/api/v3/datasources';
export const DATABASE = { kind: 'sqlite', path: 'numbers.db' };
export const CANARY = 'canary-2f9c1e';

/** Returns a connection that no server answers. */
export const nowhere = (password = CANARY) => ({
  kind: 'postgres',
  connection_string: `postgres://someone:${password}@127.0.0.1:1/db`,
  schema: 'public',
});

/**
 * Returns a function that creates a datasource. Without a connection of its own it gets the
 * connection of `nowhere`.
 */
export const creatorIn =
  (server: TestServer) =>
  (slug: string, more: object = {}) =>
    server.request('POST', LISTED, { body: { slug, connection: nowhere(), ...more } });

/** Returns the status and the code of a refusal. */
export function problem({ status, body }: RawAnswer): [number, unknown] {
  return [status, Object(body).code];
}
