/** From a provider to a language model of the AI SDK, which is loaded on first use: starting the server must not pay for it. */
import type { JSONValue, LanguageModel } from 'ai';
import type { ProviderName } from './model-id.ts';

export type Sdk = typeof import('ai');

/** Where and how a model is asked. */
export interface ModelTarget {
  readonly provider: ProviderName;
  readonly name: string;
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  /** What sends the requests; the global `fetch` when absent. */
  readonly fetch?: typeof fetch;
}

/** What is sent along with every request to a provider. */
export const PROVIDER_OPTIONS: Readonly<Record<string, Record<string, JSONValue>>> = {
  // Nothing of a conversation is to stay with the vendor.
  openai: { store: false },
};

export async function loadSdk(): Promise<Sdk> {
  return import('ai');
}

export async function openModel(target: ModelTarget, send: typeof fetch): Promise<LanguageModel> {
  const { provider, name, baseUrl: baseURL, apiKey = 'none' } = target;
  switch (provider) {
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return createAnthropic({ baseURL, apiKey, fetch: send })(name);
    }
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai');
      return createOpenAI({ baseURL, apiKey, fetch: send }).responses(name);
    }
    case 'openai-compatible':
    case 'local': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const key = target.apiKey === undefined ? {} : { apiKey };
      return createOpenAICompatible({
        name: provider,
        baseURL,
        ...key,
        includeUsage: true,
        fetch: send,
      }).chatModel(name);
    }
  }
}
