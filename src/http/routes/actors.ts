import Type from 'typebox';
import type { ActorRuntime } from '#src/actors/runtime.ts';
import { ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { Timestamp } from '../schemas/paging.ts';

const ActorSchema = Type.Object(
  {
    kind: Type.String(),
    id: Type.String(),
    machine: Type.String(),
    state: Type.Unknown({ description: 'The state value of the statechart.' }),
    since: Type.String({ format: 'date-time', description: 'When it last moved.' }),
    revision: Type.Integer({ description: 'Stored transitions.' }),
    lastEvents: Type.Array(
      Type.Object({ type: Type.String(), at: Timestamp }, { additionalProperties: false }),
    ),
  },
  { $id: 'Actor', additionalProperties: false },
);

export function actorRoutes(actors: ActorRuntime): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/actors',
      operationId: 'inspectActors',
      summary: 'Look into the live actors of the workspace',
      description:
        'Environments, sessions and runs that are in memory, with their state and the last events they got.',
      tags: ['Operations'],
      access: { action: 'inspect.read' },
      responses: {
        200: {
          description: 'The actors.',
          schema: Type.Object(
            { items: Type.Array(ActorSchema) },
            { $id: 'ActorList', additionalProperties: false },
          ),
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
