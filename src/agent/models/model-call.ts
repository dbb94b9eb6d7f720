/**
 * One question to a model: streams its text and resolves with its whole answer. It makes no retries
 * and runs no tools.
 */
import type {
  LanguageModelV3Message,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import type { EntryPart } from '#src/contract/wire/agent.ts';
import { distinctIds, type ProviderData } from '../entry.ts';
import { CallMeter, type CallUsage, estimatedInput, type Figures } from './call-meter.ts';
import { DELTA_FORMATS, type PieceKind } from './delta-format.ts';
import { DeltaTap } from './delta-tap.ts';
import { ModelFailure, modelFailureOf } from './model-failure.ts';
import { fetchThrough, sharedDispatcher } from './model-wire.ts';
import { type ModelTarget, openModel, PROVIDER_OPTIONS } from './providers.ts';

export interface ToolDeclaration {
  readonly name: string;
  readonly description: string;
  readonly schema: object;
}

export interface ModelQuestion {
  readonly target: ModelTarget;
  readonly id: string;
  readonly system: string;
  readonly messages: readonly LanguageModelV3Message[];
  readonly tools: readonly ToolDeclaration[];
  readonly maxOutputTokens: number | undefined;
  /** A call without a byte for this long has failed. */
  readonly silenceMs: number;
  /** `ANSWER_LIMITS` when absent. */
  readonly limits?: AnswerLimits;
  /** The W3C trace context that is sent to the provider. */
  readonly traceparent?: string | undefined;
  /** Closes the connection to the provider at any stage of the call. */
  readonly signal: AbortSignal;
  readonly onText: (text: string) => void;
  readonly onReasoning: (text: string) => void;
  /** Counts the tokens of the call, for a caller that needs the count even if the call breaks off. */
  readonly meter?: CallMeter;
}

export interface ModelAnswer {
  readonly parts: readonly EntryPart[];
  readonly provider: readonly ProviderData[];
  /** The errors of tool calls that the model wrote wrongly, by the ids of the calls. */
  readonly invalid: ReadonlyMap<string, string>;
  readonly usage: CallUsage;
  readonly finish: 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'error' | 'other';
}

/** The limits of an answer. A call whose answer exceeds one fails with `model_answer_too_long`. */
export interface AnswerLimits {
  /** The most characters of text, reasoning and arguments of calls together. */
  readonly chars: number;
  /** The most blocks of text, blocks of reasoning and calls together. */
  readonly blocks: number;
  /**
   * The size of everything received. `chars` alone is not a limit, because events have other members than text, and some have no
   * text.
   */
  readonly bytes: number;
}

/** These limits are above the size of every useful answer, and stop an endless answer. */
export const ANSWER_LIMITS: AnswerLimits = { chars: 1024 * 1024, blocks: 1_000, bytes: 64 * 1024 * 1024 };

/** Rejects with `ModelFailure`, or with the signal's reason. */
export async function askModel(question: ModelQuestion): Promise<ModelAnswer> {
  const { signal, silenceMs, target, id, system, maxOutputTokens, limits = ANSWER_LIMITS } = question;
  const { meter = new CallMeter(() => estimatedInput(question)) } = question;
  signal.throwIfAborted();
  // Leaving the loop over the stream does not close the connection; aborting does.
  const stop = new AbortController();
  const onAbort = () => stop.abort();
  signal.addEventListener('abort', onAbort, { once: true });
  let isSilent = false;
  using watch = new IdleTimeout(silenceMs, () => {
    isSilent = true;
    stop.abort();
  });
  let bytes = 0;
  const onBytes = (count: number) => {
    watch.heard();
    bytes += count;
    if (bytes > limits.bytes) stop.abort();
  };
  const deltas = new DeltaDeduplicator(question, meter);
  try {
    const send = fetchThrough({
      dispatcher: target.dispatcher ?? (await sharedDispatcher()),
      onBytes,
      traceparent: question.traceparent,
      tap: new DeltaTap(
        DELTA_FORMATS[target.provider],
        ({ kind, text }) => deltas.tapped(kind, text),
        ({ figures, areFinal }) => meter.named(figures, areFinal),
      ),
    });
    const model = await openModel(target, stop.signal, send);
    const { stream } = await model.doStream({
      prompt: [
        ...(system === '' ? [] : [{ role: 'system', content: system } as const]),
        ...question.messages,
      ],
      abortSignal: stop.signal,
      providerOptions: PROVIDER_OPTIONS,
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(question.tools.length === 0
        ? {}
        : { tools: declared(question.tools), toolChoice: { type: 'auto' } }),
    });
    return await collect(stream, id, limits, deltas, meter);
  } catch (error) {
    signal.throwIfAborted();
    if (bytes > limits.bytes) throw tooLong(id);
    if (isSilent) {
      const message = `${id} sent nothing for ${Math.round(silenceMs / 100) / 10} s.`;
      throw new ModelFailure('model_silent', message, undefined);
    }
    throw modelFailureOf(error, { id, secrets: target.apiKey === undefined ? [] : [target.apiKey] });
  } finally {
    signal.removeEventListener('abort', onAbort);
    stop.abort();
  }
}

function tooLong(id: string): ModelFailure {
  return new ModelFailure('model_answer_too_long', `${id} did not come to an end.`, null);
}

function declared(tools: readonly ToolDeclaration[]) {
  return tools.map(({ name, description, schema }) => ({
    type: 'function' as const,
    name,
    description,
    inputSchema: schema,
  }));
}

/** Passes on every piece of an answer once. Both the tap and the SDK deliver it; the first delivery counts. */
class DeltaDeduplicator {
  readonly #tell: Readonly<Record<PieceKind, (text: string) => void>>;
  /** The number of characters that the tap has passed on and the SDK has not delivered yet. */
  readonly #ahead: Record<PieceKind, number> = { text: 0, reasoning: 0 };

  /** The first half of a character, until the next piece brings the second half. */
  readonly #half: Record<PieceKind, string> = { text: '', reasoning: '' };

  readonly #meter: CallMeter;

  constructor({ onText, onReasoning }: Pick<ModelQuestion, 'onText' | 'onReasoning'>, meter: CallMeter) {
    this.#tell = { text: onText, reasoning: onReasoning };
    this.#meter = meter;
  }

  tapped(kind: PieceKind, text: string): void {
    this.#ahead[kind] += text.length;
    this.#passOn(kind, text);
  }

  given(kind: PieceKind, text: string): void {
    const known = Math.min(this.#ahead[kind], text.length);
    this.#ahead[kind] -= known;
    // Half of a character at an end of this text belongs to the text before or after.
    if (known < text.length) this.#passOn(kind, text.slice(known));
  }

  /** Passes whole characters on: a vendor may send the halves of a character in two pieces. */
  #passOn(kind: PieceKind, text: string): void {
    const whole = this.#half[kind] + text;
    this.#half[kind] = /[\ud800-\udbff]$/.exec(whole)?.[0] ?? '';
    const told = whole.slice(0, whole.length - this.#half[kind].length);
    if (told === '') return;
    this.#meter.heard(told);
    this.#tell[kind](told);
  }
}

interface Block {
  part: EntryPart;
  provider: ProviderData;
}

async function collect(
  stream: AsyncIterable<LanguageModelV3StreamPart>,
  id: string,
  limits: AnswerLimits,
  deltas: DeltaDeduplicator,
  meter: CallMeter,
): Promise<ModelAnswer> {
  const blocks: Block[] = [];
  /**
   * How many characters of a call's arguments were counted as they arrived, by the call's id. Some servers send the arguments only
   * with the whole call.
   */
  const inputChars = new Map<string, number>();
  const open = new Map<string, Block & { part: { type: 'text' | 'reasoning'; text: string } }>();
  const invalid = new Map<string, string>();
  const distinct = distinctIds();
  let length = 0;
  let end: Pick<ModelAnswer, 'usage' | 'finish'> | undefined;

  const count = (chars: number) => {
    length += chars;
    if (length > limits.chars) throw tooLong(id);
  };
  const countInput = (callId: string, chars: number) => {
    if (!inputChars.has(callId) && inputChars.size >= limits.blocks) throw tooLong(id);
    inputChars.set(callId, (inputChars.get(callId) ?? 0) + chars);
    count(chars);
  };
  const add = (block: Block) => {
    blocks.push(block);
    if (blocks.length > limits.blocks) throw tooLong(id);
  };
  const begin = (type: 'text' | 'reasoning', key: string) => {
    const block = { part: { type, text: '' }, provider: null };
    add(block);
    open.set(`${type} ${key}`, block);
    return block;
  };
  const extend = (type: 'text' | 'reasoning', key: string, text: string, data: unknown) => {
    count(text.length);
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
        extend('text', part.id, part.delta, part.providerMetadata);
        deltas.given('text', part.delta);
        break;
      case 'reasoning-delta':
        extend('reasoning', part.id, part.delta, part.providerMetadata);
        deltas.given('reasoning', part.delta);
        break;
      case 'text-end':
        extend('text', part.id, '', part.providerMetadata);
        break;
      case 'reasoning-end':
        extend('reasoning', part.id, '', part.providerMetadata);
        break;
      case 'tool-input-start':
        countInput(part.id, 0);
        break;
      case 'tool-input-delta':
        countInput(part.id, part.delta.length);
        meter.heard(part.delta);
        break;
      case 'tool-call': {
        const { toolCallId: sentId, toolName: name, providerMetadata } = part;
        const callId = distinct(sentId);
        const input = inputOf(part.input);
        if ((inputChars.get(sentId) ?? 0) === 0) meter.heard(part.input);
        countInput(sentId, Math.max(0, part.input.length - (inputChars.get(sentId) ?? 0)));
        add({
          // Unreadable arguments are kept as text for the person; the model gets a message that names the error.
          part: { type: 'tool-call', callId, name, input: input === undefined ? part.input : input },
          provider: providerData(providerMetadata),
        });
        if (input === undefined) invalid.set(callId, 'its arguments are not JSON');
        break;
      }
      case 'finish':
        end = { usage: meter.complete(figuresOf(part.usage)), finish: part.finishReason.unified };
        break;
      case 'error':
        throw part.error;
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
    // Half a character that a vendor sent alone, as when it stopped at its limit, cannot be sent to clients.
    parts: said.map(({ part }) => ('text' in part ? { ...part, text: part.text.toWellFormed() } : part)),
    provider: said.map(({ provider }) => provider),
    invalid,
    ...end,
  };
}

function providerData(data: unknown): ProviderData {
  return typeof data === 'object' && data !== null ? { ...data } : null;
}

/** Returns the arguments of a call; undefined when they are not JSON, an empty object when there are none. */
function inputOf(text: string): unknown {
  if (text.trim() === '') return {};
  try {
    return JSON.parse(text, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value));
  } catch {
    return undefined;
  }
}

function figuresOf({ inputTokens, outputTokens }: LanguageModelV3Usage): Figures {
  return {
    input: inputTokens.total,
    cacheRead: inputTokens.cacheRead,
    cacheWrite: inputTokens.cacheWrite,
    output: outputTokens.total,
    reasoning: outputTokens.reasoning,
  };
}

/** Calls `onSilence` when `heard` was not called for `silenceMs`. Runs from its construction to `dispose`. */
class IdleTimeout implements Disposable {
  readonly #timer: NodeJS.Timeout;

  constructor(silenceMs: number, onSilence: () => void) {
    this.#timer = setTimeout(onSilence, silenceMs);
  }

  readonly heard = (): void => {
    this.#timer.refresh();
  };

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
