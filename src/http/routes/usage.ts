import type { Principal } from '#src/base/caller/principal.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { ModelUsagePage, WorkspaceUsage } from '#src/contract/wire/usage.ts';
import { ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The days and the page of the sums of tokens that a request asks for. */
export interface ModelUsageQuery {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

/** The disk space that the workspace uses, and the tokens of models. `models` returns a page of the sums that the caller may see. */
export function usageRoutes(
  disk: (principal: Principal) => Promise<Omit<WorkspaceUsage, 'models'>>,
  models: (principal: Principal, query: ModelUsageQuery) => ModelUsagePage,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getUsage,
      summary: 'Read the disk space and the tokens of models that the workspace has used',
      description:
        'Returns the size of the files with their quota, and the size of the records by kind. The server counts both in ' +
        'the background, so the figures may be older (`countedAt`). The first figures for a very large ' +
        'workspace may be incomplete. `models` has the tokens by day, member and model, up to the last answer.',
      tags: ['Operations'],
      access: { action: 'file.read' },
      errors: ['invalid_cursor'],
      async handle({ principal, query }) {
        const page = models(principal, query);
        return ok({ ...(await disk(principal)), models: page });
      },
    }),
  ];
}
