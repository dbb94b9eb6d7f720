import { anySignal } from '#src/base/async/any-signal.ts';
import type { ModelTest } from '#src/contract/wire/models.ts';
import { CallMeter, type CallUsage, estimatedInput } from './call-meter.ts';
import { type AnswerLimits, askModel } from './model-call.ts';
import { ModelFailure } from './model-failure.ts';
import type { Models } from './models.ts';

const DEADLINE_MS = 60_000;
const SYSTEM = 'Answer with the one word: ready';
const MESSAGES = [{ role: 'user', content: [{ type: 'text', text: 'Are you ready?' }] }] as const;
/** Enough for one word and the reasoning before it. */
const LIMITS: AnswerLimits = { chars: 64 * 1024, blocks: 100, bytes: 8 * 1024 * 1024 };

/**
 * Asks a model for one word, and reports the tokens of the call. Resolves with the result, also when the model does not answer
 * within `deadlineMs`. Throws the errors
 * of `Models.choose`; rejects with the signal's reason when it aborts.
 */
export async function testModel(
  models: Models,
  workspaceId: string,
  asked: string | null,
  signal: AbortSignal,
  onUsage: (model: string, usage: CallUsage) => void,
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
  const messages = MESSAGES.map(({ role, content }) => ({ role, content: [...content] }));
  const meter = new CallMeter(() => estimatedInput({ system: SYSTEM, messages, tools: [] }));
  let usage: CallUsage | undefined;
  try {
    const answer = await askModel({
      target: await model.target(),
      id: model.id,
      system: SYSTEM,
      messages,
      tools: [],
      maxOutputTokens: 64,
      silenceMs: deadlineMs * 2, // longer than the deadline
      limits: LIMITS,
      signal: anySignal(signal, late),
      onText: () => {},
      onReasoning: () => {},
      meter,
    });
    usage = answer.usage;
    return result(true, 'The model answered.');
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) return result(false, `${model.id} did not answer within ${deadlineMs / 1000} s.`);
    if (!(error instanceof ModelFailure)) throw error;
    return result(false, error.failure.message);
  } finally {
    const spent = usage ?? meter.soFar;
    if (spent !== undefined) onUsage(model.id, spent);
  }
}
