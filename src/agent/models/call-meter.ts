/**
 * The tokens of one call of a model, while it is answered: the figures that the provider has named so far, and the bytes of the
 * answer. So a call that breaks off or is cancelled is counted as well. A figure that the provider does not name is estimated.
 */
import type { LanguageModelV3Message } from '@ai-sdk/provider';

/** Figures as a provider names them. A missing one is unknown. */
export interface Figures {
  /** All tokens of the request, including tokens in the provider's cache. */
  readonly input?: number | undefined;
  /** The part of the input that was read from the provider's cache. */
  readonly cacheRead?: number | undefined;
  /** The part of the input that was written to the provider's cache. */
  readonly cacheWrite?: number | undefined;
  readonly output?: number | undefined;
  readonly reasoning?: number | undefined;
}

/** The tokens of a call. */
export interface CallUsage {
  readonly inputTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteInputTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  /** Whether the provider did not name the figures of input or output, so that they are estimates. */
  readonly isEstimated: boolean;
}

const BYTES_PER_TOKEN = 4;
const PICTURE_TOKENS = 1_500;
/** A larger figure is not believed. */
const MAX_FIGURE = 1_000_000_000;

export class CallMeter {
  readonly #estimatedInput: () => number;
  #figures: Figures = {};
  /** Whether the figures cover the whole answer. */
  #areFinal = false;
  #heardBytes = 0;

  /** `estimatedInput` is called when the provider names no figure of the input. */
  constructor(estimatedInput: () => number) {
    this.#estimatedInput = estimatedInput;
  }

  /** Takes figures that replace earlier ones. */
  named(figures: Figures, areFinal: boolean): void {
    this.#figures = { ...this.#figures, ...sound(figures) };
    this.#areFinal ||= areFinal;
  }

  /** Takes a piece of the answer: text, reasoning, or arguments of a call. */
  heard(piece: string): void {
    this.#heardBytes += Buffer.byteLength(piece);
  }

  /** Returns the tokens of a call that is not complete; undefined while there are neither figures nor a piece of the answer. */
  get soFar(): CallUsage | undefined {
    if (this.#heardBytes === 0 && Object.keys(this.#figures).length === 0) return undefined;
    return this.#usage(this.#figures, this.#areFinal);
  }

  /** Returns the tokens of a complete call, for which the AI SDK found these figures. */
  complete(figures: Figures): CallUsage {
    return this.#usage({ ...this.#figures, ...sound(figures) }, true);
  }

  #usage({ input = 0, output = 0, cacheRead, cacheWrite, reasoning }: Figures, areFinal: boolean): CallUsage {
    // The AI SDK and some servers report 0 for unknown figures. Every request and every piece of an answer
    // has tokens, so 0 counts as unknown.
    const knowsInput = input > 0;
    const knowsOutput = areFinal && (output > 0 || this.#heardBytes === 0);
    const heard = Math.ceil(this.#heardBytes / BYTES_PER_TOKEN);
    return {
      inputTokens: knowsInput ? input : this.#estimatedInput(),
      cachedInputTokens: cacheRead ?? 0,
      cacheWriteInputTokens: cacheWrite ?? 0,
      outputTokens: knowsOutput ? output : Math.max(output, heard),
      reasoningTokens: reasoning ?? 0,
      isEstimated: !knowsInput || !knowsOutput,
    };
  }
}

/** Returns the members that are numbers of tokens. */
function sound(figures: Figures): Figures {
  const members = Object.entries(figures).filter(
    ([, figure]) => Number.isSafeInteger(figure) && figure >= 0 && figure <= MAX_FIGURE,
  );
  return Object.fromEntries(members);
}

/** The parts of a request that a model reads. */
export interface RequestText {
  readonly system: string;
  readonly messages: readonly LanguageModelV3Message[];
  readonly tools: readonly object[];
}

/**
 * Estimates the tokens of a request: one for every four bytes of its texts and names, and a fixed number for
 * each picture. The texts are measured one by one, because making the JSON of a long conversation would block
 * the event loop.
 */
export function estimatedInput({ system, messages, tools }: RequestText): number {
  let pictures = 0;
  let bytes = 0;
  const open: unknown[] = [system, messages, tools];
  while (open.length > 0) {
    const value = open.pop();
    if (isPicture(value)) pictures++;
    else if (typeof value === 'object' && value !== null) {
      for (const [name, member] of Object.entries(value)) {
        if (!Array.isArray(value)) bytes += Buffer.byteLength(name);
        open.push(member);
      }
    } else if (value !== undefined) bytes += Buffer.byteLength(String(value));
  }
  return Math.ceil(bytes / BYTES_PER_TOKEN) + pictures * PICTURE_TOKENS;
}

function isPicture(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'image-data';
}
