import Type from 'typebox';
import type { Subject } from '#src/datasource/access.ts';
import type { DatasourceGrants } from '#src/datasource/grants.ts';
import { actorOf } from '../audited-routes.ts';
import { created, noContent, ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { GrantSchema, GrantSubject } from '../schemas/datasource.ts';

export function datasourceGrantRoutes(grants: DatasourceGrants): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/datasources/:slug/grants',
      operationId: 'listDatasourceGrants',
      summary: 'Who a datasource is shared with',
      description: 'Beside them, owners of the workspace and whoever made the datasource may read it.',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      responses: {
        200: {
          description: 'All grants.',
          schema: Type.Object(
            { items: Type.Array(GrantSchema) },
            { $id: 'DatasourceGrantList', additionalProperties: false },
          ),
        },
      },
      handle: ({ principal, params }) => ok({ items: grants.list({ principal }, params.slug) }),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/datasources/:slug/grants',
      operationId: 'grantDatasource',
      summary: 'Share a datasource',
      description: 'Read access also covers testing, replacing and deleting it.',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      audited: true,
      sameOrigin: true,
      body: Type.Object({ subject: GrantSubject }, { additionalProperties: false }),
      responses: {
        201: { description: 'Shared.', schema: GrantSchema, headers: { location: 'The grant.' } },
      },
      handle(exchange) {
        const { slug } = exchange.params;
        const grant = grants.add(actorOf(exchange), slug, exchange.body.subject as Subject);
        const subject = encodeURIComponent(grant.subject);
        return created(grant, `/api/v3/datasources/${slug}/grants/${subject}`);
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/datasources/:slug/grants/:subject',
      operationId: 'revokeDatasourceGrant',
      summary: 'Stop sharing a datasource',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      audited: true,
      sameOrigin: true,
      responses: { 204: { description: 'No longer shared.' } },
      handle(exchange) {
        grants.remove(actorOf(exchange), exchange.params.slug, exchange.params.subject);
        return noContent();
      },
    }),
  ];
}
