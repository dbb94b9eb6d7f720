/**
 * The models that a workspace can use: models of the server's settings, models of the workspace's own keys,
 * and a model file on the disk.
 */
import type { Dispatcher } from 'undici';
import type { Secret } from '#src/base/caller/secret.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { ModelProvider } from '#src/contract/wire/models.ts';
import { ModelFailure } from './model-failure.ts';
import {
  KEYED_PROVIDERS,
  type KeyedProvider,
  type ModelId,
  modelIdText,
  PROVIDERS,
  type ProviderName,
  parseModelId,
} from './model-id.ts';
import type { ModelKeys } from './model-keys.ts';
import type { ModelTarget } from './providers.ts';

/** The members of the server's settings that define the available models. */
export interface ModelSettings {
  readonly defaultModel: string | undefined;
  readonly anthropicApiKey: Secret | undefined;
  readonly anthropicBaseUrl: string;
  readonly openaiApiKey: Secret | undefined;
  readonly openaiBaseUrl: string;
  readonly openaiCompatibleUrl: string | undefined;
  readonly openaiCompatibleApiKey: Secret | undefined;
  /** The size of a model's window, in tokens; 0: the provider's usual number. */
  readonly modelContextTokens: number;
}

/** A model file that this machine serves itself. */
export interface LocalModel {
  /** The model's name after `local/`. */
  readonly name: string;
  /** Returns advice on making the model usable; undefined when it is usable. */
  lacks(): string | undefined;
  /** Resolves once the model can be asked; starts the processes that it needs. Rejects with a one-line reason. */
  connect(): Promise<{ readonly apiKey: string; readonly dispatcher: Dispatcher }>;
}

/** A model that can be asked now, according to the settings. */
export interface ChosenModel {
  readonly id: string;
  readonly seesImages: boolean;
  /** The approximate number of tokens that the model reads at once. */
  readonly windowTokens: number;
  readonly maxOutputTokens: number | undefined;
  target(): Promise<ModelTarget>;
}

const WINDOWS: Readonly<Record<ProviderName, number>> = {
  anthropic: 200_000,
  openai: 128_000,
  'openai-compatible': 32_000,
  local: 4_096,
};
const MAX_OUTPUT: Readonly<Record<ProviderName, number | undefined>> = {
  anthropic: 16_000,
  openai: undefined,
  'openai-compatible': undefined,
  local: 1_024,
};

const WAYS_OUT =
  'Give it one of three: a key (ANTHROPIC_API_KEY or OPENAI_API_KEY for the server, or `troupe models set-key` for this ' +
  'workspace), the address of an OpenAI-compatible server (TROUPE_OPENAI_COMPATIBLE_URL), or a GGUF file ' +
  '(TROUPE_LOCAL_MODEL). Then name the model in the config of the conversation or in TROUPE_DEFAULT_MODEL.';

export class Models {
  readonly #settings: ModelSettings;
  readonly #keys: ModelKeys;
  readonly #local: LocalModel | undefined;

  constructor(settings: ModelSettings, keys: ModelKeys, local: LocalModel | undefined) {
    this.#settings = settings;
    this.#keys = keys;
    this.#local = local;
  }

  /** Returns the model for conversations that name none; null when there is none. */
  get defaultModel(): string | null {
    const [settings, local] = [this.#settings, this.#local];
    return settings.defaultModel ?? (local === undefined ? null : `local/${local.name}`);
  }

  /** Throws `no_model_configured`, `model_not_configured` or `unknown_model`; each names the remedy. */
  choose(workspaceId: string, asked: string | null): ChosenModel {
    const text = asked ?? this.defaultModel;
    if (text === null) {
      throw new AppError('no_model_configured', `This conversation has no model. ${WAYS_OUT}`);
    }
    const id = parseModelId(text);
    const { provider } = id;
    this.#requireUsable(workspaceId, id);
    const { modelContextTokens } = this.#settings;
    return {
      id: modelIdText(id),
      // In chat completions a picture in a tool's result is sent as text. That costs many tokens, and the model does
      // not see the picture.
      seesImages: provider === 'anthropic' || provider === 'openai',
      windowTokens: modelContextTokens === 0 ? WINDOWS[provider] : modelContextTokens,
      maxOutputTokens: MAX_OUTPUT[provider],
      target: () => this.#target(workspaceId, id),
    };
  }

  /** Returns every provider, and whether this workspace can use it. */
  states(workspaceId: string): ModelProvider[] {
    return PROVIDERS.map((provider) => {
      const source = this.#source(workspaceId, provider);
      const local = this.#local;
      const models = provider === 'local' && local !== undefined ? [`local/${local.name}`] : [];
      return { provider, usable: source !== null, source, models };
    });
  }

  /** Returns a provider that takes a key; undefined when `text` names none. */
  keyedProvider(text: string): KeyedProvider | undefined {
    return KEYED_PROVIDERS.find((provider) => provider === text);
  }

  #requireUsable(workspaceId: string, { provider, name }: ModelId): void {
    const local = this.#local;
    if (provider === 'local' && local !== undefined && local.name !== name) {
      throw new AppError('unknown_model', `The only local model of this server is local/${local.name}.`);
    }
    if (this.#source(workspaceId, provider) !== null) return;
    const lacks = (provider === 'local' ? local?.lacks() : undefined) ?? LACKS[provider];
    throw new AppError('model_not_configured', `The models ${provider}/… cannot be used: ${lacks}`);
  }

  #source(workspaceId: string, provider: ProviderName): ModelProvider['source'] {
    const [settings, keys, local] = [this.#settings, this.#keys, this.#local];
    switch (provider) {
      case 'local':
        return local === undefined || local.lacks() !== undefined ? null : 'settings';
      case 'openai-compatible':
        return settings.openaiCompatibleUrl === undefined ? null : 'settings';
      default:
        if (keys.has(workspaceId, provider)) return 'workspace';
        return this.#settingsKey(provider) === undefined ? null : 'settings';
    }
  }

  async #target(workspaceId: string, { provider, name }: ModelId): Promise<ModelTarget> {
    const [settings, local] = [this.#settings, this.#local];
    if (provider === 'local') {
      invariant(local !== undefined, 'Only a server with a local model asks it.');
      const connection = await local.connect().catch((error: Error) => {
        const message = `The local model cannot be loaded: ${error.message}`;
        throw new ModelFailure('model_unreachable', message, null);
      });
      return { provider, name, baseUrl: 'http://local/v1', ...connection };
    }
    const baseUrl = {
      anthropic: settings.anthropicBaseUrl,
      openai: settings.openaiBaseUrl,
      'openai-compatible': settings.openaiCompatibleUrl ?? '',
    }[provider];
    return { provider, name, baseUrl, apiKey: this.#key(workspaceId, provider) };
  }

  #key(workspaceId: string, provider: KeyedProvider): string | undefined {
    return this.#keys.open(workspaceId, provider) ?? this.#settingsKey(provider)?.reveal();
  }

  #settingsKey(provider: KeyedProvider): Secret | undefined {
    const { anthropicApiKey, openaiApiKey, openaiCompatibleApiKey } = this.#settings;
    return { anthropic: anthropicApiKey, openai: openaiApiKey, 'openai-compatible': openaiCompatibleApiKey }[
      provider
    ];
  }
}

const LACKS: Readonly<Record<ProviderName, string>> = {
  anthropic: 'set ANTHROPIC_API_KEY, or `troupe models set-key anthropic` for this workspace.',
  openai: 'set OPENAI_API_KEY, or `troupe models set-key openai` for this workspace.',
  'openai-compatible': 'set TROUPE_OPENAI_COMPATIBLE_URL to the address of the server, with its /v1.',
  local: 'set TROUPE_LOCAL_MODEL to a GGUF file.',
};
