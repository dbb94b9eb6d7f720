import { signal } from '@preact/signals';
import { Action } from '../parts/action.tsx';
import { go, here, linkTo, place } from '../state/route.ts';
import { signOut, user } from '../state/sign-in.ts';
import { nextTheme, theme } from '../state/theme.ts';
import { isHelpOpen } from './keys.tsx';
import { Mark } from './mark.tsx';

/** Whether the list of views is open, on narrow screens. */
export const isMenuOpen = signal(false);

export function TopBar() {
  const { workspaceId } = place.value;
  const { workspaces = [], account, isOfBrowser = false } = user.value ?? {};
  return (
    <header class="top-bar">
      <button
        type="button"
        class="menu quiet"
        aria-expanded={isMenuOpen.value}
        aria-controls="views"
        aria-label="Views"
        onClick={() => {
          isMenuOpen.value = !isMenuOpen.value;
        }}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          <path d="M2 4h12M2 8h12M2 12h12" />
        </svg>
      </button>
      <a class="home" href={here(['overview'])} aria-label="Troupe, overview">
        <Mark /> <span>Troupe</span>
      </a>
      <label class="workspace">
        <span class="sr">Workspace</span>
        <select
          value={workspaceId}
          onChange={({ currentTarget }) => go(linkTo(currentTarget.value, [place.peek().view || 'overview']))}
        >
          {workspaces.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <search class="search">
        <form onSubmit={search}>
          <input
            name="q"
            type="search"
            placeholder="Find an id …"
            aria-label="Find an actor by a part of an id"
          />
          <kbd>/</kbd>
        </form>
      </search>
      <div class="me">
        <button
          type="button"
          class="quiet"
          onClick={nextTheme}
          title={`Colours: ${theme.value}`}
          aria-label={`Colours: ${theme.value}`}
        >
          <svg viewBox="0 0 16 16" aria-hidden="true">
            <circle cx="8" cy="8" r="5.5" />
            <path class="full" d={HALVES[theme.value]} />
          </svg>
        </button>
        <button
          type="button"
          class="quiet keys"
          aria-label="Keys"
          title="Keys (?)"
          onClick={() => {
            isHelpOpen.value = true;
          }}
        >
          ?
        </button>
        <span
          class="user"
          title={
            isOfBrowser ? account?.user.id : `${account?.user.id}, with the token ${account?.token.name}`
          }
        >
          {account?.user.id}
        </span>
        <Action label="Sign out" run={signOut} />
      </div>
    </header>
  );
}

const HALVES = {
  system: 'M8 2.5a5.5 5.5 0 0 1 0 11z',
  light: '',
  dark: 'M8 2.5a5.5 5.5 0 0 1 0 11a5.5 5.5 0 0 1 0-11z',
};

function search(event: SubmitEvent & { readonly currentTarget: HTMLFormElement }): void {
  event.preventDefault();
  const q = String(new FormData(event.currentTarget).get('q')).trim();
  event.currentTarget.reset();
  if (q !== '') go(here(['actors'], { q, ended: 'true' }));
}
