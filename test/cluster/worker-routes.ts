/** Routes that show in which worker a request is carried out, and its course there. */
import Type from 'typebox';
import { AppError } from '#src/base/errors/errors.ts';
import { json, noContent, ok, raw, stream } from '#src/http/reply/reply.ts';
import { defineRoute, type Route } from '#src/http/route.ts';
import { docs, use } from '../http/thing-routes.ts';

/** More bytes than the system buffers for a connection that is not read, which is a few MiB at either end. */
export const LARGE = Buffer.alloc(24 * 1024 * 1024, 'large');

/** The requests of one worker. */
export interface Seen {
  /** Requests whose handler has begun and does not end by itself. */
  begun: number;
  readonly subscribers: ((bytes: Uint8Array) => boolean)[];
  /** How often a stream that had refused bytes has asked for more. */
  writable: number;
  closed: number;
  aborted: number;
}

/** Returns the routes of a worker. Bodies of bytes are read once `gate` has resolved. */
export function routesOf(worker: number, seen: Seen, gate: Promise<void>): readonly Route[] {
  return [
    defineRoute({
      ...docs,
      method: 'GET',
      path: '/things/:thingId',
      operationId: 'getThing',
      access: use,
      headers: { 'if-none-match': 'd' },
      query: Type.Object({ limit: Type.Integer({ default: 1 }) }),
      handle: ({ params, query, headers, requestId, remoteAddress, principal }) =>
        json(
          200,
          { worker, ...params, ...query, ...headers, requestId, remoteAddress, in: principal.workspaceId },
          { etag: '"1"' },
        ),
      audited: true,
    }),
    defineRoute({
      ...docs,
      method: 'GET',
      path: '/anywhere',
      operationId: 'getAnywhere',
      access: use,
      readsStoreOnly: true,
      handle: () => ok({ worker }),
    }),
    defineRoute({
      ...docs,
      method: 'POST',
      path: '/things',
      operationId: 'createThing',
      access: use,
      body: Type.Object({ name: Type.String() }),
      handle: ({ body }) => json(201, { worker, ...body }, { location: '/things/1' }),
    }),
    defineRoute({
      ...docs,
      method: 'DELETE',
      path: '/things/:thingId',
      operationId: 'deleteThing',
      access: use,
      handle: () => noContent(),
    }),
    defineRoute({
      ...docs,
      method: 'GET',
      path: '/large',
      operationId: 'getLarge',
      access: use,
      handle: () => raw('application/octet-stream', LARGE),
    }),
    defineRoute({
      ...docs,
      method: 'PUT',
      path: '/bytes',
      operationId: 'putBytes',
      access: use,
      takesBytes: true,
      bodyLimitBytes: LARGE.byteLength,
      async handle({ content }) {
        seen.begun++;
        await gate;
        let bytes = 0;
        for await (const piece of content) bytes += piece.byteLength;
        return ok({ worker, bytes });
      },
    }),
    defineRoute({
      ...docs,
      method: 'GET',
      path: '/slow',
      operationId: 'getSlow',
      access: use,
      async handle({ signal }) {
        seen.begun++;
        await new Promise<void>((resolve) => {
          signal.addEventListener('abort', () => resolve());
        });
        seen.aborted++;
        throw new AppError('unavailable', 'late');
      },
    }),
    defineRoute({
      ...docs,
      method: 'GET',
      path: '/events',
      operationId: 'getEvents',
      access: use,
      responses: { 200: { description: 'd', contentType: 'text/event-stream' } },
      handle: () =>
        stream((sink) => {
          seen.subscribers.push((bytes) => sink.write(bytes));
          return {
            writable: () => void seen.writable++,
            close: () => void seen.closed++,
            cutOff: () => {},
            probe: () => Buffer.from(':'),
          };
        }),
    }),
  ];
}
