/** From a provider to a language model of the AI SDK, which is loaded on first use: starting the server must not pay for it. */

import type { LanguageModelV3, SharedV3ProviderOptions } from '@ai-sdk/provider';
import type { Dispatcher } from 'undici';
import { invariant } from '#src/base/errors/invariant.ts';
import type { ProviderName } from './model-id.ts';

/** The address of a model and the options of its calls. */
export interface ModelTarget {
  readonly provider: ProviderName;
  readonly name: string;
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  /** The dispatcher of the connections to the model's server; absent: the shared one. */
  readonly dispatcher?: Dispatcher;
}

/** The options sent with every request to a provider. */
export const PROVIDER_OPTIONS: SharedV3ProviderOptions = {
  // The vendor must store nothing of a conversation.
  openai: { store: false },
};

type Send = typeof fetch;

const MAX_MODELS = 100;
/** The sender of a call's requests, by the call's signal, because one model serves many calls at once. */
const sends = new WeakMap<AbortSignal, Send>();
/** Language models by their target, kept because making one takes more time and memory than a call. */
const models = new Map<string, Promise<LanguageModelV3>>();

/** Returns the model of a target. `send` sends the requests of calls that have `signal`. */
export function openModel(target: ModelTarget, signal: AbortSignal, send: Send): Promise<LanguageModelV3> {
  sends.set(signal, send);
  const { provider, name, baseUrl, apiKey } = target;
  const key = JSON.stringify([provider, name, baseUrl, apiKey]);
  const model = models.get(key) ?? makeModel(target);
  models.delete(key);
  models.set(key, model); // the least recently used model is discarded first
  for (const oldest of models.keys()) if (models.size > MAX_MODELS) models.delete(oldest);
  return model;
}

const dispatch: Send = (input, init) => {
  const send = sends.get(init?.signal ?? new AbortController().signal);
  invariant(send !== undefined, 'A request to a model belongs to a call.');
  return send(input, init);
};

async function makeModel({
  provider,
  name,
  baseUrl: baseURL,
  apiKey,
}: ModelTarget): Promise<LanguageModelV3> {
  switch (provider) {
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return createAnthropic({ baseURL, apiKey: apiKey ?? 'none', fetch: dispatch })(name);
    }
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai');
      return createOpenAI({ baseURL, apiKey: apiKey ?? 'none', fetch: dispatch }).responses(name);
    }
    case 'openai-compatible':
    case 'local': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const key = apiKey === undefined ? {} : { apiKey };
      const common = { name: provider, baseURL, includeUsage: true, fetch: dispatch };
      return createOpenAICompatible({ ...common, ...key }).chatModel(name);
    }
  }
}
