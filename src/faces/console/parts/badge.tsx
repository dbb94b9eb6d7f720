import { type Tone, toneOf } from './words.ts';

/**
 * A state or a status, with a dot of its colour. The text says the same as the colour, so nobody
 * depends on the colour.
 */
export function Badge({ state, tone = toneOf(state) }: { readonly state: string; readonly tone?: Tone }) {
  return (
    <span class={`badge ${tone}`} title={state}>
      <i aria-hidden="true" />
      <span>{state}</span>
    </span>
  );
}
