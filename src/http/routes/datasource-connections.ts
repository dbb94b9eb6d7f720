import Type from 'typebox';
import type { Datasources } from '#src/datasource/datasources.ts';
import { actorOf } from '../audited-routes.ts';
import { encodedJson } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import {
  ConnectionSchema,
  ConnectionTestSchema,
  DATASOURCE_BODY_LIMIT_BYTES,
} from '../schemas/datasource.ts';
import { probeReply } from './datasources.ts';

/** `schema` is the JSON Schema of every connection kind. */
export function datasourceConnectionRoutes(datasources: Datasources, schema: object): readonly Route[] {
  const document = JSON.stringify(schema);
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/datasource-connections/schema',
      operationId: 'getConnectionSchema',
      summary: 'The JSON Schema of connections of every kind',
      tags: ['Datasources'],
      access: { action: 'datasource.read' },
      responses: {
        200: {
          description: 'One JSON Schema 2020-12 document.',
          schema: Type.Unsafe<object>({ type: 'object', required: ['$schema', 'oneOf'] }),
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
      body: Type.Object({ connection: ConnectionSchema }, { additionalProperties: false }),
      responses: {
        200: { description: 'It works.', schema: ConnectionTestSchema },
        400: { description: 'It does not.', schema: ConnectionTestSchema },
      },
      handle: async (exchange) =>
        probeReply(await datasources.testUnsaved(actorOf(exchange), exchange.body.connection)),
    }),
  ];
}
