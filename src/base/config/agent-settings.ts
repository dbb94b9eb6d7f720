import { httpUrl, integer, path, pattern, seconds, secret } from './kinds.ts';
import { optional, setting } from './setting.ts';

const DAY_S = 86_400;
const apiKey = secret(/^[\x21-\x7e]+$/, 'visible ASCII characters');
const MODEL_ID = pattern(/^[a-z0-9][a-z0-9-]*\/\S+$/, 'provider/model, such as anthropic/claude-sonnet-4-5');

/** Settings of models, and the limits of a prompt. In the order of the documentation. */
export const AGENT_SETTINGS = {
  defaultModel: optional({
    env: 'TROUPE_DEFAULT_MODEL',
    kind: MODEL_ID,
    description: 'Model for agent conversations that do not name one.',
  }),
  localModel: optional({
    env: 'TROUPE_LOCAL_MODEL',
    kind: path,
    description: 'GGUF file that llama.cpp serves, in a separate process, as `local/<file name>`.',
  }),
  localModelMemoryMb: setting({
    env: 'TROUPE_LOCAL_MODEL_MEMORY_MB',
    kind: integer(0, 16_777_216),
    default: '0',
    unit: 'MiB',
    description: 'Most memory of the process that serves the local model; 0: no limit.',
  }),
  openaiCompatibleUrl: optional({
    env: 'TROUPE_OPENAI_COMPATIBLE_URL',
    kind: httpUrl,
    description: 'URL of an OpenAI-compatible server such as vLLM, Ollama or llama.cpp, including `/v1`.',
  }),
  openaiCompatibleApiKey: optional({
    env: 'TROUPE_OPENAI_COMPATIBLE_API_KEY',
    kind: apiKey,
    description: 'API key for TROUPE_OPENAI_COMPATIBLE_URL, if that server needs one.',
  }),
  anthropicApiKey: optional({
    env: 'ANTHROPIC_API_KEY',
    kind: apiKey,
    description: 'API key for the models `anthropic/…`.',
  }),
  openaiApiKey: optional({
    env: 'OPENAI_API_KEY',
    kind: apiKey,
    description: 'API key for the models `openai/…`.',
  }),
  anthropicBaseUrl: setting({
    env: 'TROUPE_ANTHROPIC_BASE_URL',
    kind: httpUrl,
    default: 'https://api.anthropic.com/v1',
    description: 'URL of the service for the models `anthropic/…`, including `/v1`; a proxy, for instance.',
  }),
  openaiBaseUrl: setting({
    env: 'TROUPE_OPENAI_BASE_URL',
    kind: httpUrl,
    default: 'https://api.openai.com/v1',
    description: 'URL of the service for the models `openai/…`, including `/v1`; a proxy, for instance.',
  }),
  modelSilenceS: setting({
    env: 'TROUPE_MODEL_SILENCE_S',
    kind: seconds(0.05, 3600),
    default: '120',
    unit: 's',
    description:
      'Time without a byte from the model after which a step of a prompt counts as failed and is retried.',
  }),
  modelContextTokens: setting({
    env: 'TROUPE_MODEL_CONTEXT_TOKENS',
    kind: integer(0, 10_000_000),
    default: '0',
    unit: 'tokens',
    description:
      'Context size of the models. If a request would exceed this size, older tool outputs are left out. 0: the usual size of each provider.',
  }),
  agentMaxSteps: setting({
    env: 'TROUPE_AGENT_MAX_STEPS',
    kind: integer(1, 1000),
    default: '50',
    description: 'Most steps of one prompt. A step is one answer of the model.',
  }),
  agentMaxTokens: setting({
    env: 'TROUPE_AGENT_MAX_TOKENS',
    kind: integer(0, 1_000_000_000),
    default: '0',
    unit: 'tokens',
    description:
      'Most tokens of one prompt: input and output together, also of answers that broke off. If a provider reports no tokens, the server estimates them. 0 means no limit.',
  }),
  agentTimeoutS: setting({
    env: 'TROUPE_AGENT_TIMEOUT_S',
    kind: seconds(0.05, 7 * DAY_S),
    default: '1800',
    unit: 's',
    description: 'Longest time that one prompt may take.',
  }),
} as const;
