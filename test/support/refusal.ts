import assert from 'node:assert/strict';
import { ApiError } from '#src/contract/client/api-error.ts';

/** Returns status and code of a call that must be refused, such as `409 session_busy`. */
export async function refusalOf(call: Promise<unknown>): Promise<string> {
  const { status, code } = await problemOf(call);
  return `${status} ${code}`;
}

/** Returns the error of a call that must be refused. */
export async function problemOf(call: Promise<unknown>): Promise<ApiError> {
  const answer = await call.catch((error: unknown) => error);
  if (answer instanceof ApiError) return answer;
  if (answer instanceof Error) throw answer;
  assert.fail(`not refused: ${JSON.stringify(answer)}`);
}

/** Returns how many calls ended in which way: `ok`, or status and code of the refusal. */
export async function tally(calls: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const outcome of await Promise.allSettled(calls)) {
    if (outcome.status === 'rejected' && !(outcome.reason instanceof ApiError)) throw outcome.reason;
    const name = outcome.status === 'fulfilled' ? 'ok' : `${outcome.reason.status} ${outcome.reason.code}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}
