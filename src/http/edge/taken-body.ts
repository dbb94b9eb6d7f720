/** The JSON body of a request: parsed, checked and hashed, at once or, when it is large, in slices. */
import type { Hmac } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { atOnce, inSlices, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { hashBody } from '../idempotency/idempotency.ts';
import { parseJsonBody, parseLargeJsonBody } from './json-body.ts';
import type { Check } from './violations.ts';

export interface TakenBody {
  readonly value: unknown;
  /** Returns the hash of the bytes under the idempotency key of the request. */
  readonly hashOf: (key: string) => Hmac;
}

/** The body for a handler that reads no JSON. */
export const NO_BODY: TakenBody = {
  value: undefined,
  hashOf: (key) => atOnce(hashBody(key, new Uint8Array())),
};

/**
 * Returns the body, or a promise when it is large. Throws, or rejects with, the errors of `parseJsonBody` and of the check. `key`
 * is the idempotency key, if there is one, and `workspaceId` that of the caller.
 */
export function takeBody(
  bytes: Buffer,
  check: Check | undefined,
  key: string | undefined,
  workspaceId: string | undefined,
): TakenBody | Promise<TakenBody> {
  if (bytes.length > MAX_SIZE_AT_ONCE) return takeInSlices(bytes, check, key, workspaceId);
  const value = parseJsonBody(bytes);
  check?.(value);
  return { value, hashOf: (name) => atOnce(hashBody(name, bytes)) };
}

async function takeInSlices(
  bytes: Buffer,
  check: Check | undefined,
  key: string | undefined,
  workspaceId: string | undefined,
): Promise<TakenBody> {
  const value = await inSlices(parseLargeJsonBody(bytes), workspaceId);
  check?.(value);
  await nextTurn();
  if (key === undefined) return { ...NO_BODY, value };
  const hash = await inSlices(hashBody(key, bytes), workspaceId);
  return { value, hashOf: () => hash };
}
