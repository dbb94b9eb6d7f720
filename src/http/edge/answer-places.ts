/**
 * The places of large answers that are being made. A handler that reads a record of 16 MiB and makes its JSON has several copies of it
 * in memory, and many requests at once would fill the memory before the first answer is charged (`body-memory.ts`). So a route whose
 * answers may be large begins only when its workspace has a place, and keeps the place until its answer is charged. An answer that is
 * ready in the turn of its handler needs none.
 */
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { noRoomForReply } from './body-memory.ts';

export type AnswerPlaces = Readonly<Pick<FairSemaphore, 'taken' | 'hasRoom' | 'tryHold' | 'hold'>>;

/** How many large answers one workspace makes at once. More would not be faster, because one thread makes them all. */
export const ANSWERS_OF_WORKSPACE = 4;
/** How many requests of one workspace wait for a place. */
export const MAX_WAITING_ANSWERS = 256;
/** A workspace that makes no large answer may always make one, so that other workspaces cannot keep its members from reading. */
const LIMITS = {
  width: 12,
  widthOfKey: ANSWERS_OF_WORKSPACE,
  queueOfKey: MAX_WAITING_ANSWERS,
  alwaysOne: true,
};

export function createAnswerPlaces(): AnswerPlaces {
  return new FairSemaphore(LIMITS);
}

interface PlacedRequest {
  readonly principal: Principal | undefined;
  readonly signal: AbortSignal;
  answerPlace: Disposable | undefined;
}

/** The exchange whose answer has a place. */
interface PlacedExchange {
  readonly prepared: { readonly isMutation: boolean };
  readonly context: { readonly answerPlaces: AnswerPlaces };
  readonly request: PlacedRequest;
}

/** Returns whether the answer has its place, or could take one at once. */
export function hasPlace({ context, request }: PlacedExchange): boolean {
  return (
    request.answerPlace !== undefined || context.answerPlaces.hasRoom(request.principal?.workspaceId ?? '')
  );
}

/** Takes the place of an answer that is being made, if it has none and one is free. */
export function takeAnswerPlace({ context, request }: PlacedExchange): void {
  request.answerPlace ??= context.answerPlaces.tryHold(request.principal?.workspaceId ?? '');
}

/**
 * Resolves once the answer has a place. Rejects with `unavailable` when too many answers of the workspace wait, or the client has left.
 * `isCarriedOut`: the request has changed something already, so only its answer is refused.
 */
export async function waitForPlace(exchange: PlacedExchange, { isCarriedOut = false } = {}): Promise<void> {
  takeAnswerPlace(exchange);
  const { context, prepared, request } = exchange;
  if (request.answerPlace !== undefined) return;
  try {
    request.answerPlace = await context.answerPlaces.hold(
      request.principal?.workspaceId ?? '',
      request.signal,
    );
  } catch {
    throw noRoomForReply(isCarriedOut && prepared.isMutation);
  }
}

/** Gives the place back, if the answer has one. */
export function leavePlace(request: PlacedRequest): void {
  request.answerPlace?.[Symbol.dispose]();
  request.answerPlace = undefined;
}
