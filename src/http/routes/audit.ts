import type { AuditTrail } from '#src/audit/audit-trail.ts';
import { ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { AuditEntrySchema } from '../schemas/audit.ts';
import { PageQuery, pageSchema } from '../schemas/paging.ts';

export function auditRoutes(audit: AuditTrail): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/audit',
      operationId: 'listAudit',
      summary: 'Who did what in the workspace, oldest first',
      description:
        'Changes of members, roles, tokens, workspaces, keys, datasources and what is shared; and queries of datasources, ' +
        'those of a second that are alike as one entry, without their text. The oldest entries go when there are more than ' +
        '20,000 changes, or 10,000 entries of queries. Entries of queries appear within about a second.',
      tags: ['Operations'],
      access: { action: 'audit.read' },
      query: PageQuery,
      responses: { 200: { description: 'A page.', schema: pageSchema('AuditPage', AuditEntrySchema) } },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(audit.list(principal.workspaceId, query)),
    }),
  ];
}
