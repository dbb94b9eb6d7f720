import type { AnyMachineSnapshot } from 'xstate';
import { AppError, CATALOGUE, type ErrorCode } from '#src/core/errors.ts';
import { type Address, addressText } from './address.ts';

/** What a state says about commands it does not take: `meta: { refuse: { <event type>: <error code> } }`. */
export interface RefusalMeta {
  readonly refuse?: Readonly<Record<string, string>>;
}

/** What a caller can do about a refusal, by its code. */
const ADVICE: Partial<Record<ErrorCode, string>> = {
  session_busy: 'Wait until it is ready again, or cancel what it does.',
  session_not_ready: 'Wait until it is ready: its events and a GET of it say when.',
  session_failed: 'A GET of it says why, and a few seconds later starts it again.',
  session_closed: 'To use it, open it again.',
  session_exists: 'Use that one, or close it first.',
  session_not_editable: 'Leave code and config out, or open it again in edit mode.',
  environment_occupied: 'Close that session first, or take another environment.',
  environment_in_use: 'Close them first.',
  environment_closed: 'Create another one.',
  run_finished: 'A GET of it says how.',
};

/** The refusal of `eventType` that the deepest active state gives. A command that no state refuses by name is a bug. */
export function refusal(snapshot: AnyMachineSnapshot, address: Address, eventType: string): AppError {
  const metas = Object.entries(snapshot.getMeta() as Record<string, RefusalMeta | undefined>);
  metas.sort(([a], [b]) => b.split('.').length - a.split('.').length);
  for (const [, meta] of metas) {
    const code = meta?.refuse?.[eventType];
    if (code !== undefined) return asAppError(code, address);
  }
  throw new Error(
    `${addressText(address)} in ${JSON.stringify(snapshot.value)} neither takes nor refuses ${eventType}.`,
  );
}

function asAppError(code: string, address: Address): AppError {
  if (!(code in CATALOGUE))
    throw new Error(`A statechart refuses with ${code}, which is not in the catalogue.`);
  const known = code as ErrorCode;
  const fact = `${CATALOGUE[known].title} (${address.kind} ${address.id}).`;
  const advice = ADVICE[known];
  return new AppError(known, advice === undefined ? fact : `${fact} ${advice}`);
}
