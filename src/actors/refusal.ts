import type { AnyMachineSnapshot } from 'xstate';
import { AppError, CATALOGUE, isErrorCode } from '#src/core/errors.ts';
import { type Address, addressText } from './address.ts';

/** The type of a state's `meta` when it is read; `Refusals` is the type for writing it. */
interface StateMeta {
  readonly refuse?: Readonly<Record<string, string>>;
}

/**
 * Returns the refusal of `eventType` that the deepest active state gives. Throws when no active state refuses it by name,
 * or refuses it with an unknown code: either is a mistake of the chart.
 */
export function refusal(
  snapshot: Pick<AnyMachineSnapshot, 'value' | 'getMeta'>,
  address: Address,
  eventType: string,
): AppError {
  const metas = Object.entries(snapshot.getMeta() as Record<string, StateMeta | undefined>);
  metas.sort(([a], [b]) => b.split('.').length - a.split('.').length);
  for (const [, meta] of metas) {
    const code = meta?.refuse?.[eventType];
    if (code !== undefined) return asAppError(code, address);
  }
  throw new Error(
    `${addressText(address)} in ${JSON.stringify(snapshot.value)} neither takes nor refuses ${eventType}.`,
  );
}

function asAppError(code: string, { kind, id }: Address): AppError {
  if (!isErrorCode(code))
    throw new Error(`A statechart refuses with ${code}, which is not in the catalogue.`);
  const { title, advice } = CATALOGUE[code];
  const fact = `${title} (${kind} ${id}).`;
  return new AppError(code, advice === undefined ? fact : `${fact} ${advice}`);
}
