import type { Principal } from '#src/core/principal.ts';
import type { AuditEntry } from '#src/datasource/audit.ts';
import { ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { AuditEntrySchema } from '../schemas/datasource.ts';
import { PageQuery, pageSchema } from '../schemas/paging.ts';

type ListAudit = (
  workspaceId: Principal['workspaceId'],
  page: { readonly after?: string | undefined; readonly limit: number },
) => { readonly items: readonly AuditEntry[]; readonly nextCursor: string | null };

export function auditRoutes(list: ListAudit): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/audit',
      operationId: 'listAudit',
      summary: 'Who did what to datasources, oldest first',
      tags: ['Operations'],
      access: { action: 'audit.read' },
      query: PageQuery,
      responses: { 200: { description: 'A page.', schema: pageSchema('AuditPage', AuditEntrySchema) } },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(list(principal.workspaceId, query)),
    }),
  ];
}
