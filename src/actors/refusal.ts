import type { AnyMachineSnapshot } from 'xstate';
import { AppError, CATALOGUE, type ErrorCode } from '#src/core/errors.ts';
import { type Address, addressText } from './address.ts';

/** What a state says about commands it does not take: `meta: { refuse: { <event type>: <error code> } }`. */
export interface RefusalMeta {
  readonly refuse?: Readonly<Record<string, string>>;
}

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
  return new AppError(known, `${CATALOGUE[known].title} (${address.kind} ${address.id}).`);
}
