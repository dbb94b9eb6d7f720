/** The view that the user sees. Every view, with its filters, has a link. The part of a link after `#` is never sent to the server. */
import { signal } from '@preact/signals';

export interface ViewAddress {
  readonly workspaceId: string;
  readonly view: string;
  /** The ids after the name of the view. */
  readonly rest: readonly string[];
  readonly filters: Filters;
}

export type Filters = Readonly<Record<string, string>>;

/** The view and the ids in the present address. */
export const place = signal(parsed(location.hash));

addEventListener('hashchange', () => {
  place.value = parsed(location.hash);
});

/** Returns the link to a view. Filters that are empty are left out. */
export function linkTo(workspaceId: string, path: readonly string[], filters: Filters = {}): string {
  const given = Object.entries(filters).filter(([, value]) => value !== '');
  const query = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  return `#/${[workspaceId, ...path].map(encodeURIComponent).join('/')}${query}`;
}

/** Returns the link to a view of the present workspace. */
export function here(path: readonly string[], filters: Filters = {}): string {
  return linkTo(place.value.workspaceId, path, filters);
}

/** Goes to a link. */
export function go(link: string): void {
  location.hash = link;
}

/** Changes filters of the present view without a new entry in the history. An empty value removes a filter. */
export function filterBy(changes: Filters): void {
  const { workspaceId, view, rest, filters } = place.peek();
  const link = linkTo(workspaceId, [view, ...rest], { ...filters, ...changes });
  history.replaceState(null, '', link);
  place.value = parsed(link);
}

function parsed(hash: string): ViewAddress {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  const [workspaceId = '', view = '', ...rest] = path.split('/').map(decoded);
  return { workspaceId, view, rest, filters: Object.fromEntries(new URLSearchParams(query)) };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
