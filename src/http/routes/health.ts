import { HealthSchema, type Readiness, ReadinessSchema } from '#src/wire/operations.ts';
import { json, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Liveness (`/healthz`) and readiness (`/readyz`). Neither needs a token. */
export function healthRoutes(readiness: () => Readiness): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/healthz',
      operationId: 'getHealth',
      summary: 'Check whether the process is alive',
      tags: ['Server'],
      access: 'public',
      whileDraining: true,
      responses: { 200: { description: 'The process is alive.', schema: HealthSchema } },
      handle: () => ok({ status: 'ok' }),
    }),
    defineRoute({
      method: 'GET',
      path: '/readyz',
      operationId: 'getReadiness',
      summary: 'Check whether the server is ready for requests',
      description:
        'The server is not ready while it starts (store, kernel host), until a kernel has started, while the kernel host does not respond, and while it drains.',
      tags: ['Server'],
      access: 'public',
      whileDraining: true,
      responses: {
        200: { description: 'The server is ready.', schema: ReadinessSchema },
        503: {
          description: 'The server is not ready.',
          schema: ReadinessSchema,
          headers: { 'retry-after': 'How many seconds to wait.' },
        },
      },
      handle() {
        const state = readiness();
        return state.ready ? ok(state) : json(503, state, { 'retry-after': '1' });
      },
    }),
  ];
}
