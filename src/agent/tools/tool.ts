/** The tools of a model, each with a name and a schema. Wrong input and failures are results that the model reads. */

import type { Static, TObject } from 'typebox';
import { AppError } from '#src/base/errors/errors.ts';
import { SchemaCheck } from '#src/base/json/schema-check.ts';
import { cutText, endOfText } from '#src/base/text/cut-text.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { ToolStatus } from '#src/contract/wire/agent.ts';

export interface ToolImage {
  readonly mimetype: string;
  readonly bytes: Uint8Array;
}

export interface ToolOutcome {
  readonly status: ToolStatus;
  readonly text: string;
  readonly images?: readonly ToolImage[];
  /** The cells that the call created, changed or deleted, or was asked to run. */
  readonly touchedCells?: readonly string[];
  /** The same outcome as data, for clients that give a model only data. A refusal has no data. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface ToolCall {
  readonly callId: string;
  /** Aborts when the call is cancelled. */
  readonly signal: AbortSignal;
  /** The trace of the work that the call causes. */
  readonly trace: TraceContext | undefined;
}

/** A tool; `Call` is the data that it needs of each call. */
export interface Tool<Call extends ToolCall = ToolCall> {
  readonly name: string;
  readonly description: string;
  readonly schema: TObject;
  /** Whether the call must not run at the same time as other calls on the notebook. */
  readonly exclusive: boolean;
  /** Runs the tool. Never rejects because of its input: a failure that the model may see is an outcome. */
  run(input: unknown, call: Call): Promise<ToolOutcome>;
}

interface ToolSpec<Schema extends TObject, Call extends ToolCall> {
  readonly name: string;
  readonly description: string;
  readonly schema: Schema;
  readonly exclusive?: boolean;
  readonly run: (input: Static<Schema>, call: Call) => Promise<ToolOutcome> | ToolOutcome;
}

const SHOWN_VIOLATIONS = 5;

export function defineTool<Schema extends TObject, Call extends ToolCall>(
  spec: ToolSpec<Schema, Call>,
): Tool<Call> {
  const { name, description, schema, exclusive = false } = spec;
  const check = new SchemaCheck(schema);
  return {
    name,
    description,
    schema,
    exclusive,
    async run(input, call) {
      if (!check.matches(input)) {
        const wrong = check
          .errorsOf(input)
          .slice(0, SHOWN_VIOLATIONS)
          .map(({ instancePath, message }) => `${instancePath || 'the input'} ${message}`);
        return failed(`The input does not fit ${name}: ${wrong.join('; ')}.`);
      }
      if (call.signal.aborted) return cancelled();
      try {
        const outcome = await spec.run(input, call);
        return call.signal.aborted ? { ...outcome, status: 'cancelled' } : outcome;
      } catch (error) {
        if (call.signal.aborted) return cancelled();
        // The model reads refusals. Any other error is a bug, and its text must not reach the model.
        if (error instanceof AppError) return failed(`${error.code}: ${error.message}`);
        throw error;
      }
    },
  };
}

export function completed(
  text: string,
  data: Readonly<Record<string, unknown>>,
  images: readonly ToolImage[] = [],
): ToolOutcome {
  return { status: 'completed', text, images, data };
}

export function failed(text: string): ToolOutcome {
  return { status: 'failed', text };
}

function cancelled(): ToolOutcome {
  return { status: 'cancelled', text: 'Cancelled before it was finished.' };
}

/** The most characters of one output. The middle of a longer output is left out. */
const MAX_OUTPUT_CHARS = 16_000;

/** Returns the beginning and the end of a text that is too long, with a note between them. */
export function cut(text: string, limit = MAX_OUTPUT_CHARS): string {
  if (text.length <= limit) return text;
  const head = Math.floor(limit * 0.7);
  const tail = limit - head;
  const omitted = text.length - limit;
  return `${cutText(text, 0, head)}\n[… ${omitted} characters left out …]\n${endOfText(text, tail)}`;
}

/** The most pictures of one output. */
export const MAX_OUTPUT_IMAGES = 10;

/**
 * Returns the outcome as it is stored and shown to the model: without the middle of a long text, and with its first
 * pictures only.
 */
export function shortened(outcome: ToolOutcome): ToolOutcome {
  const { text, images = [] } = outcome;
  if (images.length <= MAX_OUTPUT_IMAGES) return { ...outcome, text: cut(text) };
  const note = `[only the first ${MAX_OUTPUT_IMAGES} of ${images.length} pictures]`;
  return { ...outcome, text: `${cut(text)}\n${note}`, images: images.slice(0, MAX_OUTPUT_IMAGES) };
}
