import type { Principal } from '#src/base/caller/principal.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { Environment } from '#src/contract/wire/session.ts';
import type { Environments } from '#src/runtime/sessions/environments.ts';
import { created, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Returns an environment without the conversations that the caller may not know of. */
export type ShownEnvironment = (principal: Principal, environment: Environment) => Environment;

/** Execution environments. */
export function executionEnvironmentRoutes(
  environments: Environments,
  shownTo: ShownEnvironment,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.createExecutionEnvironment,
      summary: 'Create an execution environment',
      description:
        'An environment holds at most one active notebook session. The body is an empty object, or none.',
      tags: ['Execution environments'],
      access: { action: 'environment.write' },
      sharedTurn: true,
      errors: ['not_found'],
      handle({ principal }) {
        const record = environments.create(principal.workspaceId);
        return created(record, pathOf('getExecutionEnvironment', { environmentId: record.environmentId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.listExecutionEnvironments,
      summary: 'List execution environments, by the time at which they were created',
      tags: ['Execution environments'],
      access: { action: 'environment.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      async handle({ principal, query, signal }) {
        const page = await environments.list(principal.workspaceId, { ...query, signal });
        return ok({
          ...page,
          items: page.items.map((environment) => shownTo(principal, environment)),
        });
      },
    }),
    defineRoute({
      ...OPERATIONS.getExecutionEnvironment,
      summary: 'Read an execution environment',
      description: 'Closed environments can be read as well.',
      tags: ['Execution environments'],
      access: { action: 'environment.read' },
      readsStoreOnly: true,
      handle: ({ principal, params }) =>
        ok(shownTo(principal, environments.record(principal.workspaceId, params.environmentId))),
    }),
    defineRoute({
      ...OPERATIONS.closeExecutionEnvironment,
      summary: 'Close an execution environment',
      description:
        'Refused while sessions are attached to the environment. Files of the workspace are not deleted.',
      tags: ['Execution environments'],
      access: { action: 'environment.write' },
      sharedTurn: true,
      errors: ['environment_in_use', 'environment_closed'],
      handle: ({ principal, params }) =>
        ok(shownTo(principal, environments.close(principal.workspaceId, params.environmentId))),
    }),
  ];
}
