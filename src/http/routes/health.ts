import type { Readiness } from '#src/contract/wire/health.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { json, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Liveness (`/healthz`) and readiness (`/readyz`). Neither needs a token. */
export function healthRoutes(readiness: () => Readiness, isLeaving: () => boolean): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getHealth,
      summary: 'Check whether the process is alive',
      description:
        'The server answers from its start to its end. The status is 200 even while the server is not ready, and 503 while it drains. Proxies in front of one server ask this path; service managers ask `GET /readyz`.',
      tags: ['Server'],
      access: 'public',
      whileDraining: true,
      handle: () =>
        isLeaving() ? json(503, { status: 'draining' }, { 'retry-after': '1' }) : ok({ status: 'ok' }),
    }),
    defineRoute({
      ...OPERATIONS.getReadiness,
      summary: 'Check whether the server is ready for requests',
      description:
        'The server is not ready while it starts, until a first kernel has started, while the kernel host does not respond, and while the server drains.',
      tags: ['Server'],
      access: 'public',
      whileDraining: true,
      handle() {
        const state = readiness();
        return state.ready ? ok(state) : json(503, state, { 'retry-after': '1' });
      },
    }),
  ];
}
