import type { Datasources } from '#src/datasource/datasources.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { encodedJson } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { auditContextOf } from './audited-routes.ts';
import { DATASOURCE_BODY_LIMIT_BYTES, probeReply } from './datasources.ts';

/** Connections that are not saved. `schema` is the JSON Schema of every kind of connection. */
export function datasourceConnectionRoutes(datasources: Datasources, schema: object): readonly Route[] {
  const document = JSON.stringify(schema);
  return [
    defineRoute({
      ...OPERATIONS.getConnectionSchema,
      summary: 'Read the JSON Schema of connections',
      tags: ['Datasources'],
      access: { action: 'datasource.read' },
      readsStoreOnly: true,
      handle: () => encodedJson(document),
    }),
    defineRoute({
      ...OPERATIONS.testConnection,
      summary: 'Test a connection without saving it',
      tags: ['Datasources'],
      access: { action: 'datasource.test' },
      audited: true,
      sameOrigin: true,
      bodyLimitBytes: DATASOURCE_BODY_LIMIT_BYTES,
      handle: async (request) =>
        probeReply(await datasources.testUnsaved(auditContextOf(request), request.body.connection)),
    }),
  ];
}
