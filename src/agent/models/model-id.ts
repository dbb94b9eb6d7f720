import { AppError } from '#src/base/errors/errors.ts';

export const PROVIDERS = ['anthropic', 'openai', 'openai-compatible', 'local'] as const;

export type ProviderName = (typeof PROVIDERS)[number];

/** Providers that take a key. */
export const KEYED_PROVIDERS = ['anthropic', 'openai', 'openai-compatible'] as const;

export type KeyedProvider = (typeof KEYED_PROVIDERS)[number];

export interface ModelId {
  readonly provider: ProviderName;
  /** The provider's name for the model. */
  readonly name: string;
}

/** Parses `provider/model`. Throws `unknown_model`, which shows the form of a model id. */
export function parseModelId(text: string): ModelId {
  const slash = text.indexOf('/');
  const provider = PROVIDERS.find((known) => known === text.slice(0, slash));
  const name = text.slice(slash + 1);
  if (provider === undefined || slash < 0 || !/^\S{1,256}$/.test(name)) {
    const known = PROVIDERS.map((each) => `${each}/…`).join(', ');
    throw new AppError('unknown_model', `${JSON.stringify(text)} is not a model id. There are ${known}.`, {
      errors: [{ path: '/config/model', message: `must be one of ${known}` }],
    });
  }
  return { provider, name };
}

export function modelIdText({ provider, name }: ModelId): string {
  return `${provider}/${name}`;
}
