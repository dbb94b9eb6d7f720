import type { ActorRuntime } from '#src/actors/runtime.ts';
import { ActorListSchema } from '#src/wire/operations.ts';
import { ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The live actors, for operators. */
export function actorRoutes(actors: ActorRuntime): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/actors',
      operationId: 'inspectActors',
      summary: 'List the live actors of the workspace',
      description:
        'The environments, sessions and runs that are in memory, with their state and the last events they received.',
      tags: ['Operations'],
      access: { action: 'inspect.read' },
      responses: {
        200: {
          description: 'All live actors.',
          schema: ActorListSchema,
        },
      },
      handle({ principal }) {
        const items = [...actors.inspect()]
          .filter((actor) => actor.workspaceId === principal.workspaceId)
          .map(({ workspaceId: _, ...actor }) => actor);
        return ok({ items });
      },
    }),
  ];
}
