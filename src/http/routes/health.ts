import Type from 'typebox';
import { json, ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';

const Health = Type.Object({ status: Type.Literal('ok') }, { $id: 'Health', additionalProperties: false });
const Readiness = Type.Object(
  {
    ready: Type.Boolean(),
    reason: Type.Optional(Type.String({ description: 'Why it is not ready.' })),
  },
  { $id: 'Readiness', additionalProperties: false },
);

export type Readiness = Type.Static<typeof Readiness>;

/** `/healthz`: the process answers. `/readyz`: it can take work, as `readiness` says. Neither needs a token. */
export function healthRoutes(readiness: () => Readiness): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/healthz',
      operationId: 'getHealth',
      summary: 'Whether the process answers',
      tags: ['Server'],
      access: 'public',
      whileDraining: true,
      responses: { 200: { description: 'It does.', schema: Health } },
      handle: () => ok({ status: 'ok' }),
    }),
    defineRoute({
      method: 'GET',
      path: '/readyz',
      operationId: 'getReadiness',
      summary: 'Whether the server takes work',
      description: 'Not ready while it starts (store, kernel host) and while it drains.',
      tags: ['Server'],
      access: 'public',
      whileDraining: true,
      responses: {
        200: { description: 'Ready.', schema: Readiness },
        503: { description: 'Not ready.', schema: Readiness, headers: { 'retry-after': 'Seconds to wait.' } },
      },
      handle() {
        const state = readiness();
        return state.ready ? ok(state) : json(503, state, { 'retry-after': '1' });
      },
    }),
  ];
}
