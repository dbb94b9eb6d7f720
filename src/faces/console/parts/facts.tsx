import { valueText } from './words.ts';

/** Named values. Values that are null are left out. */
export function Facts({ facts }: { readonly facts: Readonly<Record<string, unknown>> }) {
  return (
    <dl class="facts">
      {Object.entries(facts).map(([name, value]) =>
        value === null || value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{valueText(value)}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
