import Type from 'typebox';
import type { ModelKeys } from '#src/agent/models/model-keys.ts';
import type { ModelTestResult } from '#src/agent/models/model-test.ts';
import type { Models } from '#src/agent/models/models.ts';
import { notFound } from '#src/core/errors.ts';
import { noContent, ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { nullable, Timestamp } from '../schemas/paging.ts';

const tags = ['Models'];
const closed = { additionalProperties: false } as const;

const ModelList = Type.Object(
  {
    defaultModel: nullable(Type.String({ description: 'Of conversations that name none.' })),
    items: Type.Array(
      Type.Object(
        {
          provider: Type.String({ description: 'Model ids are `provider/model`.' }),
          usable: Type.Boolean(),
          source: nullable(
            Type.Union([Type.Literal('workspace'), Type.Literal('settings')], {
              description: 'Where its key or its address comes from.',
            }),
          ),
          models: Type.Array(Type.String(), { description: 'Known without asking the provider.' }),
        },
        closed,
      ),
    ),
  },
  { $id: 'ModelList', ...closed },
);

const ModelTest = Type.Object(
  { ok: Type.Boolean(), model: Type.String(), message: Type.String(), elapsedMs: Type.Integer() },
  { $id: 'ModelTest', ...closed },
);

const ModelKey = Type.Object(
  { provider: Type.String(), updatedBy: Type.String(), updatedAt: Timestamp },
  { $id: 'ModelKey', ...closed },
);

export interface ModelRoutesOptions {
  readonly models: Models;
  readonly keys: ModelKeys;
  readonly test: (workspaceId: string, model: string | null, signal: AbortSignal) => Promise<ModelTestResult>;
}

export function modelRoutes({ models, keys, test }: ModelRoutesOptions): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/models',
      operationId: 'listModels',
      summary: 'The providers of models, and which of them this workspace can use',
      description: 'Never a key.',
      tags,
      access: { action: 'model.read' },
      responses: { 200: { description: 'The providers.', schema: ModelList } },
      handle: ({ principal }) =>
        ok({ defaultModel: models.defaultModel, items: models.states(principal.workspaceId) }),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/models/test',
      operationId: 'testModel',
      summary: 'Ask a model for one word',
      tags,
      access: { action: 'model.test' },
      body: Type.Object(
        { model: Type.Optional(Type.String({ minLength: 1, maxLength: 300 })) },
        { ...closed, description: 'The default model when none is named.' },
      ),
      responses: { 200: { description: 'Whether it answered.', schema: ModelTest } },
      errors: ['unknown_model', 'no_model_configured', 'model_not_configured'],
      handle: async ({ principal, body, signal }) =>
        ok(await test(principal.workspaceId, body.model ?? null, signal)),
    }),
    defineRoute({
      method: 'PUT',
      path: '/api/v3/models/keys/:provider',
      operationId: 'setModelKey',
      summary: 'Give the workspace a key of its own for a provider',
      description: 'For `anthropic`, `openai` or `openai-compatible`. It is sealed and never read back.',
      tags,
      access: { action: 'model.manage' },
      sameOrigin: true,
      body: Type.Object(
        {
          key: Type.String({
            minLength: 1,
            maxLength: 4096,
            pattern: '^[\\x21-\\x7e]+$',
            writeOnly: true,
          }),
        },
        closed,
      ),
      responses: { 200: { description: 'Kept.', schema: ModelKey } },
      handle({ principal, params: { provider }, body }) {
        const known = models.keyedProvider(provider);
        if (known === undefined) throw notFound();
        return ok({ provider, ...keys.set(principal, known, body.key) });
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/models/keys/:provider',
      operationId: 'deleteModelKey',
      summary: "Forget the workspace's key for a provider",
      tags,
      access: { action: 'model.manage' },
      sameOrigin: true,
      responses: { 204: { description: 'Forgotten.' } },
      handle({ principal, params: { provider } }) {
        const known = models.keyedProvider(provider);
        if (known === undefined) throw notFound();
        keys.remove(principal.workspaceId, known);
        return noContent();
      },
    }),
  ];
}
