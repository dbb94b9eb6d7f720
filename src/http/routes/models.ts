import type { ModelKeys } from '#src/agent/models/model-keys.ts';
import type { Models } from '#src/agent/models/models.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { notFound } from '#src/base/errors/errors.ts';
import type { ModelTest } from '#src/contract/wire/models.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const tags = ['Models'];

/** Models and the workspace's keys for their providers. */
export function modelRoutes(
  models: Models,
  keys: ModelKeys,
  test: (caller: Principal, model: string | null, signal: AbortSignal) => Promise<ModelTest>,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listModels,
      summary: 'List the model providers, and which of them this workspace can use',
      description: 'API keys are never returned.',
      tags,
      access: { action: 'model.read' },
      readsStoreOnly: true,
      handle: ({ principal }) =>
        ok({ defaultModel: models.defaultModel, items: models.states(principal.workspaceId) }),
    }),
    defineRoute({
      ...OPERATIONS.testModel,
      summary: 'Test a model by asking it for one word',
      tags,
      access: { action: 'model.test' },
      errors: ['unknown_model', 'no_model_configured', 'model_not_configured'],
      handle: async ({ principal, body, signal }) => ok(await test(principal, body.model ?? null, signal)),
    }),
    defineRoute({
      ...OPERATIONS.setModelKey,
      summary: "Set the workspace's own API key for a provider",
      description:
        'For `anthropic`, `openai` or `openai-compatible`. The key is stored encrypted and is never returned.',
      tags,
      access: { action: 'model.manage' },
      sameOrigin: true,
      handle({ principal, params: { provider }, body }) {
        const known = models.keyedProvider(provider);
        if (known === undefined) throw notFound();
        return ok({ provider, ...keys.set(principal, known, body.key) });
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteModelKey,
      summary: "Delete the workspace's own API key for a provider",
      tags,
      access: { action: 'model.manage' },
      sameOrigin: true,
      handle({ principal, params: { provider } }) {
        const known = models.keyedProvider(provider);
        if (known === undefined) throw notFound();
        keys.remove(principal.workspaceId, known);
        return noContent();
      },
    }),
  ];
}
