import Type from 'typebox';
import { NotebookStreamEventSchema } from '#src/contract/wire/events.ts';
import { createOpenApi } from '#src/http/openapi/document.ts';
import { created, noContent, ok, stream } from '#src/http/reply/reply.ts';
import { defineRoute, type Route } from '#src/http/route.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { withOpenApi } from '#src/http/routes/openapi.ts';
import { auth } from './test-server.ts';
import { use } from './thing-routes.ts';

const Part = Type.Object({ partId: Type.String() }, { $id: 'Part', additionalProperties: false });
const Thing = Type.Object(
  { thingId: Type.String(), part: Type.Optional(Part), parts: Type.Array(Part) },
  { $id: 'Thing', additionalProperties: false },
);
export const thing = { thingId: 't_1', parts: [{ partId: 'p' }] };
export const tags = ['Things'];

export const things: readonly Route[] = [
  defineRoute({
    method: 'GET',
    path: '/things',
    operationId: 'listThings',
    summary: 'Lists things',
    tags,
    access: use,
    query: Type.Object({
      limit: Type.Integer({ default: 50, description: 'How many.' }),
      after: Type.Optional(Type.String()),
    }),
    responses: { 200: { description: 'A page.', schema: Type.Object({ items: Type.Array(Thing) }) } },
    errors: ['invalid_cursor'],
    handle: () => ok({ items: [thing] }),
  }),
  defineRoute({
    method: 'POST',
    path: '/things',
    operationId: 'createThing',
    summary: 'Creates a thing',
    description: 'At once.',
    tags,
    access: use,
    body: Part,
    sameOrigin: true,
    responses: {
      201: { description: 'Created.', schema: Thing, headers: { location: 'Where it is.' } },
      400: {
        description: 'The probe failed.',
        schema: Type.Object({ ok: Type.Literal(false) }, { additionalProperties: false }),
      },
    },
    errors: ['already_exists'],
    handle: () => created(thing, '/things/t_1'),
  }),
  defineRoute({
    method: 'DELETE',
    path: '/things/:thingId',
    operationId: 'deleteThing',
    summary: 'Deletes a thing',
    tags,
    access: { action: 'forbidden' },
    responses: { 204: { description: 'Gone.' } },
    handle: () => noContent(),
  }),
  defineRoute({
    method: 'GET',
    path: '/things/:thingId/events',
    operationId: 'streamThing',
    summary: 'Streams a thing',
    tags,
    access: use,
    headers: { 'last-event-id': 'Where to go on.' },
    responses: {
      200: {
        description: 'The stream.',
        contentType: 'text/event-stream',
        schema: NotebookStreamEventSchema,
      },
    },
    handle: () => stream(() => ({ probe: () => Buffer.alloc(0), writable() {}, cutOff() {}, close() {} })),
  }),
];
export const routes = withOpenApi(
  [
    ...healthRoutes(
      () => ({ ready: true }),
      () => false,
    ),
    ...things,
  ],
  {
    version: '1.2.3',
    requirements: auth.requirements,
  },
);
export const document = createOpenApi(routes, { version: '1.2.3', requirements: auth.requirements });
