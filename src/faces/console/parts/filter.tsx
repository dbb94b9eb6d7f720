/**
 * Filters of a view. The link of a view contains its filters, so a filtered view can be bookmarked and sent.
 */
import { useRef } from 'preact/hooks';
import { filterBy, place } from '../state/route.ts';

const TYPING_PAUSE_MS = 250;

/** A filter that searches for a text. */
export function TextFilter({ name, label }: { readonly name: string; readonly label: string }) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  return (
    <input
      type="search"
      class="filter"
      aria-label={label}
      placeholder={label}
      value={place.value.filters[name] ?? ''}
      onInput={({ currentTarget: { value } }) => {
        clearTimeout(timer.current);
        timer.current = setTimeout(() => filterBy({ [name]: value.trim() }), TYPING_PAUSE_MS);
      }}
    />
  );
}

interface Choice {
  readonly value: string;
  readonly title: string;
}

/** A filter that lets through one of several values, or all values. */
export function ChoiceFilter(props: {
  readonly name: string;
  readonly label: string;
  readonly choices: readonly Choice[];
  /** The label of the empty choice. */
  readonly all: string;
}) {
  const { name, label, choices, all } = props;
  const chosen = place.value.filters[name] ?? '';
  const isKnown = chosen === '' || choices.some(({ value }) => value === chosen);
  return (
    <select
      class="filter"
      aria-label={label}
      value={chosen}
      onChange={({ currentTarget }) => filterBy({ [name]: currentTarget.value })}
    >
      <option value="">{all}</option>
      {!isKnown && <option value={chosen}>{chosen}</option>}
      {choices.map(({ value, title }) => (
        <option key={value} value={value}>
          {title}
        </option>
      ))}
    </select>
  );
}

/** A filter that is on or off. */
export function SwitchFilter({ name, label }: { readonly name: string; readonly label: string }) {
  return (
    <label class="filter switch">
      <input
        type="checkbox"
        checked={place.value.filters[name] === 'true'}
        onChange={({ currentTarget }) => filterBy({ [name]: currentTarget.checked ? 'true' : '' })}
      />
      {label}
    </label>
  );
}
