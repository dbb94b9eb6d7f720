import Type from 'typebox';
import type { Datasources, Saved } from '#src/datasource/datasources.ts';
import type { ProbeResult } from '#src/datasource/probe.ts';
import { actorOf } from '../audited-routes.ts';
import { created, json, ok, type Reply } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import {
  ConnectionTestSchema,
  DATASOURCE_BODY_LIMIT_BYTES,
  DatasourceSchema,
  ReplacementFields,
  Slug,
} from '../schemas/datasource.ts';
import { PageQuery, pageSchema } from '../schemas/paging.ts';

const TEST_FAILED = {
  description: 'The connection test failed; nothing was saved.',
  schema: ConnectionTestSchema,
};

export function datasourceRoutes(datasources: Datasources): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/datasources',
      operationId: 'listDatasources',
      summary: 'List the datasources you may read, by slug',
      tags: ['Datasources'],
      access: { action: 'datasource.read' },
      query: PageQuery,
      responses: { 200: { description: 'A page.', schema: pageSchema('DatasourcePage', DatasourceSchema) } },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(datasources.list(principal, query)),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/datasources',
      operationId: 'createDatasource',
      summary: 'Create a datasource',
      description: 'The connection is sealed and never read back.',
      tags: ['Datasources'],
      access: { action: 'datasource.create' },
      audited: true,
      sameOrigin: true,
      bodyLimitBytes: DATASOURCE_BODY_LIMIT_BYTES,
      body: Type.Object({ slug: Slug, ...ReplacementFields }, { additionalProperties: false }),
      responses: {
        201: { description: 'Created.', schema: DatasourceSchema, headers: { location: 'The datasource.' } },
        400: TEST_FAILED,
      },
      errors: ['already_exists'],
      async handle(exchange) {
        const saved = await datasources.create(actorOf(exchange), exchange.body);
        return savedReply(saved, (metadata) => created(metadata, `/api/v3/datasources/${metadata.slug}`));
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/datasources/:slug',
      operationId: 'getDatasource',
      summary: 'Read what is known of a datasource',
      tags: ['Datasources'],
      access: { action: 'datasource.read' },
      responses: { 200: { description: 'Its metadata.', schema: DatasourceSchema } },
      handle: ({ principal, params }) => ok(datasources.get(principal, params.slug)),
    }),
    defineRoute({
      method: 'PUT',
      path: '/api/v3/datasources/:slug',
      operationId: 'replaceDatasource',
      summary: "Replace a datasource's connection",
      description:
        'Needs a complete connection, which may be of another kind. An omitted name stays, null clears it. Credentials ' +
        'are not rotated at the database.',
      tags: ['Datasources'],
      access: { action: 'datasource.write' },
      audited: true,
      sameOrigin: true,
      bodyLimitBytes: DATASOURCE_BODY_LIMIT_BYTES,
      body: Type.Object(ReplacementFields, { additionalProperties: false }),
      responses: { 200: { description: 'Replaced.', schema: DatasourceSchema }, 400: TEST_FAILED },
      errors: ['datasource_changed'],
      async handle(exchange) {
        const saved = await datasources.replace(actorOf(exchange), exchange.params.slug, exchange.body);
        return savedReply(saved, (metadata) => ok(metadata));
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/datasources/:slug',
      operationId: 'deleteDatasource',
      summary: 'Delete a datasource',
      description: 'Removes its sealed connection and its grants. Files stay.',
      tags: ['Datasources'],
      access: { action: 'datasource.delete' },
      audited: true,
      sameOrigin: true,
      responses: {
        200: {
          description: 'Deleted.',
          schema: Type.Object(
            { slug: Type.String(), deleted: Type.Literal(true) },
            { $id: 'DeletedDatasource', additionalProperties: false },
          ),
        },
      },
      handle(exchange) {
        const { slug } = exchange.params;
        datasources.delete(actorOf(exchange), slug);
        return ok({ slug, deleted: true });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/datasources/:slug/test',
      operationId: 'testDatasource',
      summary: 'Test a saved connection',
      tags: ['Datasources'],
      access: { action: 'datasource.test' },
      audited: true,
      sameOrigin: true,
      body: Type.Object({}, { additionalProperties: false }),
      optionalBody: true,
      responses: {
        200: { description: 'It works.', schema: ConnectionTestSchema },
        400: { description: 'It does not.', schema: ConnectionTestSchema },
      },
      errors: ['datasource_changed'],
      handle: async (exchange) => probeReply(await datasources.test(actorOf(exchange), exchange.params.slug)),
    }),
  ];
}

/** A completed probe that failed is 400, with the same body as one that did not. */
export function probeReply(probe: ProbeResult): Reply {
  return json(probe.ok ? 200 : 400, probe);
}

function savedReply(
  saved: Saved,
  reply: (metadata: Extract<Saved, { saved: true }>['metadata']) => Reply,
): Reply {
  return saved.saved ? reply(saved.metadata) : probeReply(saved.probe);
}
