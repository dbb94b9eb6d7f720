import Type from 'typebox';
import type { Method } from '#src/contract/wire/paths.ts';
import { mapOf } from '#src/contract/wire/shape.ts';
import { created, ok, type Reply } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { healthRoutes } from '#src/http/routes/health.ts';

/** The further parts of a route: documentation, and a right that everybody has. */
export const docs = { summary: 's', tags: ['Things'], responses: { 200: { description: 'd' } } } as const;
export const use = { action: 'thing.use' } as const;

/** Returns a route that gives every caller the result of `handle`. */
export const thingRoute = (handle: () => Reply | Promise<Reply>, method: Method = 'GET', path = '/thing') =>
  defineRoute({ ...docs, method, path, operationId: `${method}${path}`, access: use, handle });

const Thing = Type.Object(
  {
    name: Type.String(),
    parts: Type.Optional(
      Type.Array(
        Type.Union([
          Type.Object(
            { kind: Type.Literal('wheel'), spokes: Type.Integer() },
            { additionalProperties: false },
          ),
          Type.Object({ kind: Type.Literal('bell'), loud: Type.Boolean() }, { additionalProperties: false }),
        ]),
      ),
    ),
    labels: Type.Optional(mapOf(Type.String(), { propertyNames: Type.String({ pattern: '^[a-z]+$' }) })),
    anything: Type.Optional(Type.Unknown()),
  },
  { additionalProperties: false },
);

/** Routes of things that exist for the tests only: with and without a body, with a query, with a right that nobody has. */
export const thingRoutes = [
  ...healthRoutes(
    () => ({ ready: true }),
    () => false,
  ),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/things',
    operationId: 'createThing',
    access: use,
    sameOrigin: true,
    bodyLimitBytes: 4096,
    query: Type.Object({ dry: Type.Boolean({ default: false }) }),
    body: Thing,
    handle: ({ body }) => created(body, '/things/1'),
  }),
  defineRoute({
    ...docs,
    method: 'GET',
    path: '/things/:thingId',
    operationId: 'getThing',
    access: use,
    query: Type.Object({
      limit: Type.Integer({ default: 50, minimum: 1, maximum: 100 }),
      after: Type.Optional(Type.String()),
    }),
    handle: ({ params, query }) => ok({ ...params, ...query }),
  }),
  defineRoute({
    ...docs,
    method: 'GET',
    path: '/forbidden',
    operationId: 'f',
    access: { action: 'forbidden' },
    handle: () => ok({}),
  }),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/optional',
    operationId: 'optional',
    access: use,
    body: Thing,
    optionalBody: true,
    handle: ({ body }) => ok({ body: body ?? null }),
  }),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/bodiless',
    operationId: 'bodiless',
    access: use,
    handle: () => ok({}),
  }),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/large',
    operationId: 'large',
    access: use,
    bodyLimitBytes: 16 * 1024 * 1024,
    body: Thing,
    handle: () => ok({}),
  }),
];

/** The faults of a request in its problem document. */
export function violationsOf(json: unknown): unknown {
  return typeof json === 'object' && json !== null && 'errors' in json ? json.errors : undefined;
}
