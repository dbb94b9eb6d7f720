/**
 * Finds the pieces of an answer's text in the events of the vendors' protocols. Other protocols are left to the AI
 * SDK.
 */
import type { Figures } from './call-meter.ts';
import type { ProviderName } from './model-id.ts';

export type PieceKind = 'text' | 'reasoning';

export interface Piece {
  readonly kind: PieceKind;
  /** Consecutive pieces with the same place are joined. */
  readonly place: string;
  readonly text: string;
}

export interface DeltaFormat {
  /** Returns the piece of text if the event contains no other important data; otherwise undefined. */
  read(event: DeltaFields): Piece | undefined;
  /** Returns the numbers of tokens that an event names; undefined when it names none. */
  figures(event: DeltaFields): NamedFigures | undefined;
  /** Returns the event with the piece replaced by another text. */
  write(event: DeltaFields, text: string): DeltaFields;
}

export interface NamedFigures {
  readonly figures: Figures;
  /** Whether the figures cover the whole answer. */
  readonly areFinal: boolean;
}

export type DeltaFields = Readonly<Record<string, unknown>>;

const CHAT_KINDS: Readonly<Record<string, PieceKind>> = {
  content: 'text',
  reasoning_content: 'reasoning',
  reasoning: 'reasoning',
};

/** `choices[0].delta.content`; the other members of the delta must be empty. */
const chatCompletions: DeltaFormat = {
  read({ choices }) {
    if (!Array.isArray(choices) || choices.length !== 1) return undefined;
    const { delta, finish_reason: finish, index } = fieldsOf(choices[0]);
    if (finish !== null && finish !== undefined) return undefined;
    const key = keyOfPiece(fieldsOf(delta));
    const kind = CHAT_KINDS[key ?? ''];
    if (key === undefined || kind === undefined) return undefined;
    return pieceOf(kind, `${key} ${String(index)}`, fieldsOf(delta)[key]);
  },
  figures({ usage, choices }) {
    if (typeof usage !== 'object' || usage === null) return undefined;
    const { prompt_tokens, completion_tokens, prompt_tokens_details, completion_tokens_details } =
      fieldsOf(usage);
    const choice = Array.isArray(choices) ? fieldsOf(choices[0]) : {};
    return {
      figures: {
        ...{ input: figure(prompt_tokens), output: figure(completion_tokens) },
        cacheRead: figure(fieldsOf(prompt_tokens_details).cached_tokens),
        reasoning: figure(fieldsOf(completion_tokens_details).reasoning_tokens),
      },
      // Some servers send the figures so far with every piece.
      areFinal: choice.delta === undefined || typeof choice.finish_reason === 'string',
    };
  },
  write(event, text) {
    const choice = fieldsOf(fieldsOf(event.choices)[0]);
    const delta = fieldsOf(choice.delta);
    return { ...event, choices: [{ ...choice, delta: { ...delta, [keyOfPiece(delta) ?? '']: text } }] };
  },
};

/** Returns the only member that is not empty; undefined when none or several are not. */
function keyOfPiece(delta: DeltaFields): string | undefined {
  let found: string | undefined;
  for (const key in delta) {
    const value = delta[key];
    const isEmpty = value === null || value === '' || (Array.isArray(value) && value.length === 0);
    if (key === 'role' || isEmpty) continue;
    if (found !== undefined) return undefined;
    found = key;
  }
  return found;
}

/** `content_block_delta` with a `text_delta` or a `thinking_delta`. */
const messages: DeltaFormat = {
  read({ type, index, delta }) {
    if (type !== 'content_block_delta') return undefined;
    const { type: kind, text, thinking } = fieldsOf(delta);
    if (kind === 'text_delta') return pieceOf('text', `text ${String(index)}`, text);
    return kind === 'thinking_delta'
      ? pieceOf('reasoning', `thinking ${String(index)}`, thinking)
      : undefined;
  },
  figures({ type, message, usage }) {
    if (type === 'message_start') return messageFigures(fieldsOf(fieldsOf(message).usage), false);
    return type === 'message_delta' ? messageFigures(fieldsOf(usage), true) : undefined;
  },
  write(event, text) {
    const delta = fieldsOf(event.delta);
    return { ...event, delta: { ...delta, [delta.type === 'text_delta' ? 'text' : 'thinking']: text } };
  },
};

/** `response.output_text.delta` and `response.reasoning_summary_text.delta`. */
const responses: DeltaFormat = {
  read({ type, item_id: item, content_index: content, summary_index: summary, delta }) {
    if (type === 'response.output_text.delta') {
      return pieceOf('text', `text ${String(item)} ${String(content)}`, delta);
    }
    if (type !== 'response.reasoning_summary_text.delta') return undefined;
    return pieceOf('reasoning', `summary ${String(item)} ${String(summary)}`, delta);
  },
  figures({ type, response }) {
    if (!ENDS_OF_RESPONSES.has(type)) return undefined;
    const { input_tokens, output_tokens, input_tokens_details, output_tokens_details } = fieldsOf(
      fieldsOf(response).usage,
    );
    return {
      figures: {
        ...{ input: figure(input_tokens), output: figure(output_tokens) },
        cacheRead: figure(fieldsOf(input_tokens_details).cached_tokens),
        reasoning: figure(fieldsOf(output_tokens_details).reasoning_tokens),
      },
      areFinal: true,
    };
  },
  write: (event, text) => ({ ...event, delta: text }),
};

const ENDS_OF_RESPONSES = new Set<unknown>(['response.completed', 'response.incomplete', 'response.failed']);

/** The input of this protocol leaves out the tokens of the cache. */
function messageFigures(usage: DeltaFields, areFinal: boolean): NamedFigures {
  const [input, cacheRead, cacheWrite, output] = [
    usage.input_tokens,
    usage.cache_read_input_tokens,
    usage.cache_creation_input_tokens,
    usage.output_tokens,
  ].map(figure);
  const whole = input === undefined ? undefined : input + (cacheRead ?? 0) + (cacheWrite ?? 0);
  return { figures: { input: whole, cacheRead, cacheWrite, output }, areFinal };
}

function figure(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

function pieceOf(kind: PieceKind, place: string, text: unknown): Piece | undefined {
  return typeof text === 'string' && text !== '' ? { kind, place, text } : undefined;
}

function fieldsOf(value: unknown): DeltaFields {
  return typeof value === 'object' && value !== null ? (value as DeltaFields) : {};
}

export const DELTA_FORMATS: Readonly<Record<ProviderName, DeltaFormat>> = {
  anthropic: messages,
  openai: responses,
  'openai-compatible': chatCompletions,
  local: chatCompletions,
};
