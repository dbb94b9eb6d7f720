/** Model providers and the keys of workspaces for them. */
import Type from 'typebox';
import { VISIBLE_ASCII } from './patterns.ts';
import { closed, nullable, oneOf, optionalOrNull, Timestamp, type Wire } from './shape.ts';

const ModelProviderSchema = Type.Object(
  {
    provider: Type.String({ description: 'Model ids have the form `provider/model`.' }),
    usable: Type.Boolean(),
    source: nullable(
      oneOf(['workspace', 'settings'], {
        description: 'Where the key or the address of the provider is configured.',
      }),
    ),
    models: Type.Array(Type.String(), {
      description: 'The models that are known without asking the provider.',
    }),
  },
  { $id: 'ModelProvider', ...closed },
);
export type ModelProvider = Wire<typeof ModelProviderSchema>;

export const ModelListSchema = Type.Object(
  {
    defaultModel: nullable(Type.String({ description: 'The model for conversations that do not name one.' })),
    items: Type.Array(ModelProviderSchema),
  },
  { $id: 'ModelList', ...closed },
);
export type ModelList = Wire<typeof ModelListSchema>;

export const ModelTestSchema = Type.Object(
  { ok: Type.Boolean(), model: Type.String(), message: Type.String(), elapsedMs: Type.Integer() },
  { $id: 'ModelTest', ...closed },
);
export type ModelTest = Wire<typeof ModelTestSchema>;

export const ModelKeySchema = Type.Object(
  { provider: Type.String(), updatedBy: Type.String(), updatedAt: Timestamp },
  { $id: 'ModelKey', ...closed },
);
export type ModelKey = Wire<typeof ModelKeySchema>;

export const ModelTestRequestSchema = Type.Object(
  { model: optionalOrNull(Type.String({ minLength: 1, maxLength: 300 })) },
  {
    $id: 'ModelTestRequest',
    ...closed,
    description: 'The model to test. Omitted: the default model.',
    examples: [{ model: 'anthropic/claude-sonnet-4-5' }],
  },
);

export const ModelKeyRequestSchema = Type.Object(
  { key: Type.String({ minLength: 1, maxLength: 4096, pattern: VISIBLE_ASCII, writeOnly: true }) },
  { $id: 'NewModelKey', ...closed, examples: [{ key: 'sk-example' }] },
);
