/** One question to a model: streams what it says and resolves with its whole answer. No retries, no tools run here. */
import type { ModelMessage, TextStreamPart, ToolSet } from 'ai';
import type { EntryPart, ProviderData } from '../entry.ts';
import { ModelFailure, modelFailureOf } from './model-failure.ts';
import { loadSdk, type ModelTarget, openModel, PROVIDER_OPTIONS, type Sdk } from './providers.ts';
import { SilenceWatch } from './silence-watch.ts';

export interface ToolDeclaration {
  readonly name: string;
  readonly description: string;
  readonly schema: object;
}

export interface ModelQuestion {
  readonly target: ModelTarget;
  readonly id: string;
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ToolDeclaration[];
  readonly maxOutputTokens: number | undefined;
  /** Without a byte for so long the call has failed. */
  readonly silenceMs: number;
  /** Closes the connection to the provider, wherever the call is. */
  readonly signal: AbortSignal;
  readonly onText: (text: string) => void;
  readonly onReasoning: (text: string) => void;
}

export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly cachedInputTokens: number;
}

export interface ModelAnswer {
  readonly parts: readonly EntryPart[];
  readonly provider: readonly ProviderData[];
  /** Calls that the model spelled wrongly, by id, with what is wrong with them. */
  readonly invalid: ReadonlyMap<string, string>;
  readonly usage: Usage;
  readonly finish: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
}

/** More than any useful answer has: a model that never stops is stopped. */
const ANSWER_LIMIT = 1024 * 1024;

/** Rejects with `ModelFailure`, or with the signal's reason. */
export async function askModel(question: ModelQuestion): Promise<ModelAnswer> {
  const { signal, silenceMs, target, id } = question;
  const sdk = await loadSdk();
  signal.throwIfAborted();
  // Leaving the loop over the stream does not close the connection; aborting does.
  const stop = new AbortController();
  const onAbort = () => stop.abort();
  signal.addEventListener('abort', onAbort, { once: true });
  let isSilent = false;
  using watch = new SilenceWatch(silenceMs, () => {
    isSilent = true;
    stop.abort();
  });
  try {
    const model = await openModel(target, watch.fetchWith(target.fetch ?? fetch));
    const stream = sdk.streamText({
      model,
      system: question.system,
      messages: [...question.messages],
      tools: declared(question.tools, sdk),
      abortSignal: stop.signal,
      maxRetries: 0,
      providerOptions: PROVIDER_OPTIONS,
      onError: () => {}, // it comes as a part of the stream
      ...(question.maxOutputTokens === undefined ? {} : { maxOutputTokens: question.maxOutputTokens }),
    });
    return await collect(stream.fullStream, question);
  } catch (error) {
    signal.throwIfAborted();
    if (isSilent) {
      const message = `${id} said nothing for ${Math.round(silenceMs / 100) / 10} s.`;
      throw new ModelFailure('model_silent', message, undefined);
    }
    const secrets = target.apiKey === undefined ? [] : [target.apiKey];
    throw modelFailureOf(error, { id, secrets }, sdk);
  } finally {
    signal.removeEventListener('abort', onAbort);
    stop.abort();
  }
}

function declared(tools: readonly ToolDeclaration[], sdk: Sdk): ToolSet {
  // Without `execute` and `validate`: both are ours, so that what runs is in the history first.
  return Object.fromEntries(
    tools.map(({ name, description, schema }) => [
      name,
      sdk.tool({ description, inputSchema: sdk.jsonSchema<unknown>(schema) }),
    ]),
  );
}

interface Block {
  part: EntryPart;
  provider: ProviderData;
}

async function collect(
  stream: AsyncIterable<TextStreamPart<ToolSet>>,
  { onText, onReasoning, id }: ModelQuestion,
): Promise<ModelAnswer> {
  const blocks: Block[] = [];
  const open = new Map<string, Block & { part: { type: 'text' | 'reasoning'; text: string } }>();
  const invalid = new Map<string, string>();
  let length = 0;
  let end: Pick<ModelAnswer, 'usage' | 'finish'> | undefined;

  const begin = (type: 'text' | 'reasoning', key: string) => {
    const block = { part: { type, text: '' }, provider: null };
    blocks.push(block);
    open.set(`${type} ${key}`, block);
    return block;
  };
  const extend = (type: 'text' | 'reasoning', key: string, text: string, data: unknown) => {
    length += text.length;
    if (length > ANSWER_LIMIT) {
      throw new ModelFailure('model_answer_too_long', `${id} did not come to an end.`, null);
    }
    const block = open.get(`${type} ${key}`) ?? begin(type, key);
    block.part = { type, text: block.part.text + text };
    block.provider = providerData(data) ?? block.provider;
  };

  for await (const part of stream) {
    switch (part.type) {
      case 'text-start':
        begin('text', part.id);
        break;
      case 'reasoning-start':
        begin('reasoning', part.id);
        break;
      case 'text-delta':
        extend('text', part.id, part.text, part.providerMetadata);
        onText(part.text);
        break;
      case 'reasoning-delta':
        extend('reasoning', part.id, part.text, part.providerMetadata);
        onReasoning(part.text);
        break;
      case 'text-end':
        extend('text', part.id, '', part.providerMetadata);
        break;
      case 'reasoning-end':
        extend('reasoning', part.id, '', part.providerMetadata);
        break;
      case 'tool-input-delta':
        length += part.delta.length;
        if (length > ANSWER_LIMIT) extend('text', '', '', undefined);
        break;
      case 'tool-call': {
        const { toolCallId: callId, toolName: name, providerMetadata } = part;
        // What could not be read is kept as text for the person; the model is told what was wrong.
        const input: unknown = part.input ?? {};
        blocks.push({
          part: { type: 'tool-call', callId, name, input },
          provider: providerData(providerMetadata),
        });
        if (part.invalid === true) invalid.set(callId, 'its arguments are not what the tool takes');
        break;
      }
      case 'finish-step':
        end = { usage: usageOf(part.usage), finish: part.finishReason };
        break;
      case 'error':
        throw part.error;
      case 'abort':
        throw new DOMException('The call was aborted.', 'AbortError');
      default:
    }
  }
  if (end === undefined || end.finish === 'error') {
    throw new ModelFailure('model_answer_invalid', `The answer of ${id} has no end.`, undefined);
  }
  const said = blocks.filter(
    ({ part, provider }) => !('text' in part) || part.text !== '' || provider !== null,
  );
  return {
    parts: said.map(({ part }) => part),
    provider: said.map(({ provider }) => provider),
    invalid,
    ...end,
  };
}

function providerData(data: unknown): ProviderData {
  return typeof data === 'object' && data !== null ? { ...data } : null;
}

interface SdkUsage {
  readonly inputTokens: number | undefined;
  readonly outputTokens: number | undefined;
  readonly inputTokenDetails: { readonly cacheReadTokens: number | undefined };
  readonly outputTokenDetails: { readonly reasoningTokens: number | undefined };
}

/** What a provider does not say counts as none. */
function usageOf({ inputTokens, outputTokens, inputTokenDetails, outputTokenDetails }: SdkUsage): Usage {
  return {
    inputTokens: inputTokens ?? 0,
    outputTokens: outputTokens ?? 0,
    reasoningTokens: outputTokenDetails?.reasoningTokens ?? 0,
    cachedInputTokens: inputTokenDetails?.cacheReadTokens ?? 0,
  };
}
