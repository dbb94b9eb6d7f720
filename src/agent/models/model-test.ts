import { anySignal } from '#src/core/any-signal.ts';
import type { ModelTest } from '#src/wire/models.ts';
import { type AnswerLimits, askModel } from './model-call.ts';
import { ModelFailure } from './model-failure.ts';
import type { Models } from './models.ts';

const DEADLINE_MS = 60_000;
/** Enough for one word and the reasoning before it. */
const LIMITS: AnswerLimits = { chars: 64 * 1024, blocks: 100, bytes: 8 * 1024 * 1024 };

/**
 * Asks a model for one word. Resolves with the result, also when the model does not answer within `deadlineMs`. Throws the errors
 * of `Models.choose`; rejects with the signal's reason when it aborts.
 */
export async function testModel(
  models: Models,
  workspaceId: string,
  asked: string | null,
  signal: AbortSignal,
  deadlineMs = DEADLINE_MS,
): Promise<ModelTest> {
  const model = models.choose(workspaceId, asked);
  const startedAt = performance.now();
  const result = (ok: boolean, message: string): ModelTest => ({
    ok,
    model: model.id,
    message,
    elapsedMs: Math.round(performance.now() - startedAt),
  });
  const late = AbortSignal.timeout(deadlineMs);
  try {
    await askModel({
      target: await model.target(),
      id: model.id,
      system: 'Answer with the one word: ready',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Are you ready?' }] }],
      tools: [],
      maxOutputTokens: 64,
      silenceMs: deadlineMs * 2, // so long that the deadline passes first
      limits: LIMITS,
      signal: anySignal(signal, late),
      onText: () => {},
      onReasoning: () => {},
    });
    return result(true, 'The model answered.');
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) return result(false, `${model.id} did not answer within ${deadlineMs / 1000} s.`);
    if (!(error instanceof ModelFailure)) throw error;
    return result(false, error.failure.message);
  }
}
