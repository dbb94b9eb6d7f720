/**
 * The reason why a model gave no answer, in words of this server: messages of providers can contain prompts and keys.
 */

import type { APICallError } from '@ai-sdk/provider';
import type { Failure } from '#src/base/errors/errors.ts';
import type { FailureCode } from '#src/base/errors/failures.ts';
import { cutText } from '#src/base/text/cut-text.ts';

export class ModelFailure extends Error {
  readonly failure: Failure;
  /**
   * The pause before another attempt: null when another attempt would fail as well, `undefined` when the provider names no pause.
   */
  readonly retryMs: number | null | undefined;
  constructor(code: FailureCode, message: string, retryMs: number | null | undefined) {
    super(message);
    this.name = 'ModelFailure';
    this.failure = { code, message };
    this.retryMs = retryMs;
  }
}

export interface AskedModel {
  readonly id: string;
  /** Secrets that are removed from every quoted text of the provider. */
  readonly secrets: readonly string[];
}

/** The longest pause before another attempt, even if the provider asks for more. */
export const MAX_HINT_MS = 60_000;
const REPEATED = 300;
const CONTEXT_WORDS =
  /context[_ ](length|window|size)|prompt is too long|maximum context|too many tokens|exceeds the available context/i;

/** Returns the meaning of a failed call. */
export function modelFailureOf(error: unknown, model: AskedModel): ModelFailure {
  if (error instanceof ModelFailure) return error;
  if (isApiCallError(error)) return ofCall(error, model);
  const { type, name } = { type: undefined, name: undefined, ...Object(error) };
  const kind = typeof type === 'string' ? type : error instanceof Error ? error.name : String(name);
  if (/overloaded/.test(kind)) return overloaded();
  if (/rate_limit/.test(kind)) return rateLimited(undefined);
  if (/JSONParse|TypeValidation|InvalidResponseData|NoOutputGenerated/.test(kind)) {
    return new ModelFailure('model_answer_invalid', 'The model’s server sent an invalid answer.', undefined);
  }
  return new ModelFailure('model_failed', 'The model’s server reported a failure.', undefined);
}

/**
 * Recognises the error by its name, because several copies of the SDK's classes may be loaded. Before the first
 * prompt, none is loaded.
 */
function isApiCallError(error: unknown): error is APICallError {
  return error instanceof Error && error.name === 'AI_APICallError';
}

function ofCall(error: APICallError, { id, secrets }: AskedModel): ModelFailure {
  const status = error.statusCode;
  if (status === undefined)
    return new ModelFailure('model_unreachable', `The server of ${id} cannot be reached.`, undefined);
  if (status === 200)
    return new ModelFailure('model_unreachable', `The answer of ${id} broke off.`, undefined);
  if (status === 401 || status === 403) {
    return new ModelFailure('model_auth', `The provider of ${id} does not accept the key.`, null);
  }
  if (status === 429) return rateLimited(hintMs(error.responseHeaders ?? {}));
  if (status >= 500 || status === 408) return overloaded(hintMs(error.responseHeaders ?? {}));
  const said = words(error, secrets);
  if (CONTEXT_WORDS.test(said)) {
    return new ModelFailure('model_context_exceeded', `The conversation is too long for ${id}.`, null);
  }
  if (status === 404) {
    return new ModelFailure('model_unknown', `The provider knows no model ${id}: ${said}`, null);
  }
  return new ModelFailure('model_request_refused', `${id} refused the request: ${said}`, null);
}

function rateLimited(hint: number | undefined): ModelFailure {
  const message = 'The model accepts no more requests at present';
  return isTooLong(hint)
    ? new ModelFailure('model_rate_limited', `${message} for ${minutes(hint)}.`, null)
    : new ModelFailure('model_rate_limited', `${message} for now.`, hint);
}

function overloaded(hint?: number): ModelFailure {
  const message = 'The model’s server is overloaded or fails';
  return isTooLong(hint)
    ? new ModelFailure('model_overloaded', `${message}, and asks for no requests for ${minutes(hint)}.`, null)
    : new ModelFailure('model_overloaded', `${message}.`, hint);
}

function isTooLong(hint: number | undefined): hint is number {
  return hint !== undefined && hint > MAX_HINT_MS;
}

function minutes(ms: number): string {
  const count = Math.ceil(ms / 60_000);
  return `${count} minute${count === 1 ? '' : 's'}`;
}

/** Returns the pause that `retry-after-ms` asks for, or `retry-after` as seconds or as a date. */
function hintMs(headers: Readonly<Record<string, string>>): number | undefined {
  const exact = Number(headers['retry-after-ms'] ?? Number.NaN);
  if (exact >= 0) return exact;
  const text = headers['retry-after'];
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (seconds >= 0) return seconds * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

/** Returns the provider's own message, without the text of the request. */
function words({ message, responseBody = '' }: APICallError, secrets: readonly string[]): string {
  let text = message;
  try {
    const body: unknown = JSON.parse(responseBody);
    const inner: unknown = { error: undefined, ...Object(body) }.error;
    const own: unknown = { message: undefined, ...Object(inner) }.message;
    if (typeof own === 'string') text = own;
  } catch {
    // The body is not JSON, so the message of the error is used.
  }
  for (const secret of secrets) if (secret.length > 3) text = text.replaceAll(secret, '[secret]');
  return text.length > REPEATED ? `${cutText(text, 0, REPEATED)}…` : text;
}
