import type { DatasourceGrants } from '#src/datasource/grants.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { auditContextOf } from './audited-routes.ts';

/** With whom datasources are shared. */
export function datasourceGrantRoutes(grants: DatasourceGrants): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listDatasourceGrants,
      summary: 'List the subjects a datasource is shared with',
      description: 'In addition to them, its creator and the owners of the workspace can use it.',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      readsStoreOnly: true,
      handle: ({ principal, params }) => ok({ items: grants.list({ principal }, params.slug) }),
    }),
    defineRoute({
      ...OPERATIONS.grantDatasource,
      summary: 'Share a datasource',
      description: 'Whoever it is shared with can query, test, replace and delete the datasource.',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      audited: true,
      sameOrigin: true,
      checkAccess: ({ principal, params }) => grants.checkSharing(principal, params.slug),
      handle(request) {
        const { slug } = request.params;
        const grant = grants.add(auditContextOf(request), slug, request.body.subject);
        const subject = encodeURIComponent(grant.subject);
        return created(grant, `/api/v3/datasources/${slug}/grants/${subject}`);
      },
    }),
    defineRoute({
      ...OPERATIONS.revokeDatasourceGrant,
      summary: 'Stop sharing a datasource',
      tags: ['Datasources'],
      access: { action: 'datasource.share' },
      audited: true,
      sameOrigin: true,
      handle(request) {
        grants.remove(auditContextOf(request), request.params.slug, request.params.subject);
        return noContent();
      },
    }),
  ];
}
