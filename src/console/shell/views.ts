/** Every view: its name in links, its title, its key, and how it is loaded. */
import type { ComponentType } from 'preact';
import type { ViewProps } from '../view-props.ts';

export interface View {
  readonly name: string;
  readonly title: string;
  /** Pressed after `g`, it leads here. */
  readonly key: string;
  readonly group: 'Now' | 'Work' | 'Administration';
  readonly load: () => Promise<ComponentType<ViewProps>>;
}

export const VIEWS: readonly View[] = [
  {
    name: 'overview',
    title: 'Overview',
    key: 'o',
    group: 'Now',
    load: async () => (await import('../views/overview.tsx')).Overview,
  },
  {
    name: 'actors',
    title: 'Actors',
    key: 'a',
    group: 'Now',
    load: async () => (await import('../views/actors.tsx')).Actors,
  },
];
