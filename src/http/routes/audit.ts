import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The audit. */
export function auditRoutes(audit: AuditTrail): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listAudit,
      summary: 'List the actions of users in the workspace',
      description:
        'Records changes of members, roles, tokens, workspaces, keys, datasources and shares, and queries ' +
        'of datasources. Similar queries within one second are one entry. No entry contains the text of ' +
        'a query. The oldest entries are deleted when there are more than 20,000 changes or 10,000 entries ' +
        'of queries. Queries appear after about one second. `after` may also be the `id` of an entry, so ' +
        'that a reader can later continue after that entry.',
      tags: ['Operations'],
      access: { action: 'audit.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) =>
        ok(await audit.list(principal.workspaceId, { ...query, signal })),
    }),
  ];
}
