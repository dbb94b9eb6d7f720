/** Follows a delivery of a hook until its next attempt is over. */
import { pause } from '#src/contract/client/abort.ts';
import type { Client } from '#src/contract/client/client.ts';
import type { Delivery } from '#src/contract/wire/hook.ts';
import { CommandFailure } from '../exit-code.ts';

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 1_000;
/** How long an attempt is waited for: twice the time that a request of the server may take. */
const MAX_WAIT_MS = 30_000;
/** The longest page of the list of deliveries. */
const PAGE = 100;

/**
 * Resolves with the delivery once an attempt after `first` is over, or as it is after 30 seconds: other deliveries may be before it.
 * Throws `CommandFailure` when the delivery is no longer stored.
 */
export async function followDelivery(
  client: Client,
  first: Delivery,
  signal: AbortSignal,
): Promise<Delivery> {
  const endMs = performance.now() + MAX_WAIT_MS;
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
    const delivery = await deliveryOf(client, first, signal);
    if (delivery.status !== 'pending' || isAttempted(delivery, first) || performance.now() > endMs)
      return delivery;
    await pause(pauseMs, signal);
  }
}

/** Returns whether an attempt after `first` is over. During a request there is no time of the next attempt. */
export function isAttempted({ attempts, nextAttemptAt }: Delivery, first: Delivery): boolean {
  return attempts > first.attempts && nextAttemptAt !== null;
}

/** Returns the present state of a delivery, which is on the first page unless it is an old one. */
async function deliveryOf(
  client: Client,
  { id, hookId }: Pick<Delivery, 'id' | 'hookId'>,
  signal: AbortSignal,
): Promise<Delivery> {
  const found = client.hooks.eachDelivery(hookId, { order: 'desc', limit: PAGE, signal });
  for await (const delivery of found) if (delivery.id === id) return delivery;
  throw new CommandFailure(`The delivery ${id} is no longer stored: a hook keeps its last 1,000 deliveries.`);
}
