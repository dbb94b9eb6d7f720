import { AppError } from '#src/core/errors.ts';
import { OPEN_METRICS_TYPE, type Registry } from '#src/metrics/registry.ts';
import { raw } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const SCOPE = 'server:observe';

/** The metrics of the whole server. */
export function metricsRoutes(registry: Registry): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/metrics',
      operationId: 'getMetrics',
      summary: 'Read the metrics of the server',
      description:
        'Text in the OpenMetrics format, for Prometheus and others. It needs a token with the scope `server:observe` that ' +
        'is not bound to a workspace, and no `Service-Workspace-Id`. No label holds an id, a user, a workspace or a path.',
      tags: ['Operations'],
      access: 'token',
      whileDraining: true,
      responses: { 200: { description: 'The metrics.', contentType: 'application/openmetrics-text' } },
      errors: ['missing_scope'],
      handle({ holder }) {
        if (!holder.scopes.includes(SCOPE))
          throw new AppError('missing_scope', `The access token lacks the scope ${SCOPE}.`);
        if (holder.isBound)
          throw new AppError(
            'missing_scope',
            'A token that is bound to a workspace may not read the metrics.',
          );
        return raw(OPEN_METRICS_TYPE, Buffer.from(registry.text()));
      },
    }),
  ];
}
