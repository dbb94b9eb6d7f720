import type { WorkspaceId } from '#src/core/ids.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import type { WorkspaceUsage } from '#src/wire/usage.ts';
import { ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The disk space that the workspace uses. */
export function usageRoutes(usage: (workspaceId: WorkspaceId) => Promise<WorkspaceUsage>): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getUsage,
      summary: 'Read how much disk space the workspace uses',
      description:
        'Returns the size of the files with their quota, and of the records by kind. Both are counted in ' +
        'the background, so the figures may be older (`countedAt`), and the first ones for a very large ' +
        'workspace may be incomplete.',
      tags: ['Operations'],
      access: { action: 'file.read' },
      handle: async ({ principal }) => ok(await usage(principal.workspaceId)),
    }),
  ];
}
