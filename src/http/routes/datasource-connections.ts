import Type from 'typebox';
import type { Datasources } from '#src/datasource/datasources.ts';
import { ConnectionTestRequestSchema, ConnectionTestSchema } from '#src/wire/datasource.ts';
import { encodedJson } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { auditContextOf } from './audited-routes.ts';
import { DATASOURCE_BODY_LIMIT_BYTES, probeReply } from './datasources.ts';

/** Connections that are not saved. `schema` is the JSON Schema of every kind of connection. */
export function datasourceConnectionRoutes(datasources: Datasources, schema: object): readonly Route[] {
  const document = JSON.stringify(schema);
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/datasource-connections/schema',
      operationId: 'getConnectionSchema',
      summary: 'Read the JSON Schema of connections',
      tags: ['Datasources'],
      access: { action: 'datasource.read' },
      readsStoreOnly: true,
      responses: {
        200: {
          description: 'A JSON Schema 2020-12 document that covers every kind.',
          schema: Type.Unsafe<object>({
            type: 'object',
            required: ['$schema', 'oneOf'],
            examples: [{ $schema: 'https://json-schema.org/draft/2020-12/schema', oneOf: [] }],
          }),
        },
      },
      handle: () => encodedJson(document),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/datasource-connections/test',
      operationId: 'testConnection',
      summary: 'Test a connection without saving it',
      tags: ['Datasources'],
      access: { action: 'datasource.test' },
      audited: true,
      sameOrigin: true,
      bodyLimitBytes: DATASOURCE_BODY_LIMIT_BYTES,
      body: ConnectionTestRequestSchema,
      responses: {
        200: { description: 'The connection works.', schema: ConnectionTestSchema },
        400: { description: 'The connection does not work.', schema: ConnectionTestSchema },
      },
      handle: async (request) =>
        probeReply(await datasources.testUnsaved(auditContextOf(request), request.body.connection)),
    }),
  ];
}
