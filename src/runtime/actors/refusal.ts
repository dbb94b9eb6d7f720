import type { AnyMachineSnapshot } from 'xstate';
import { AppError, CATALOGUE, isErrorCode } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { RefusalFacts } from './actor-definition.ts';
import { type Address, addressText } from './address.ts';

/** The type of a state's `meta` for reading. `Refusals` is the type for writing. */
interface StateMeta {
  readonly refuse?: Readonly<Record<string, string>>;
}

/**
 * Returns the refusal of `eventType` by the deepest active state. Throws when no active state refuses the event by name, or when
 * the code is unknown: both are mistakes in the chart. `factsOf` returns further facts for a code.
 */
export function refusal(
  snapshot: Pick<AnyMachineSnapshot, 'value' | 'getMeta'>,
  address: Address,
  eventType: string,
  factsOf: (code: string) => RefusalFacts | undefined = () => undefined,
): AppError {
  const metas = Object.entries(snapshot.getMeta() as Record<string, StateMeta | undefined>);
  metas.sort(([a], [b]) => b.split('.').length - a.split('.').length);
  for (const [, meta] of metas) {
    const code = meta?.refuse?.[eventType];
    if (code !== undefined) return asAppError(code, address, factsOf(code));
  }
  const offender = `${addressText(address)} in ${JSON.stringify(snapshot.value)}, with ${eventType}`;
  invariant(false, 'A state takes or refuses each command.', offender);
}

function asAppError(code: string, { kind, id }: Address, facts: RefusalFacts | undefined): AppError {
  invariant(isErrorCode(code), 'A statechart refuses with a code of the catalogue.', code);
  const { title, advice } = CATALOGUE[code];
  const sentences = [`${title} (${kind} ${id}).`, facts?.text, advice];
  const detail = sentences.filter((sentence) => sentence !== undefined).join(' ');
  return new AppError(code, detail, facts === undefined ? {} : { members: facts.members });
}
