/** Every view: its name in links, its title, its key, and how it is loaded. */
import type { ComponentType } from 'preact';
import type { ViewProps } from '../view-props.ts';

export interface View {
  readonly name: string;
  readonly title: string;
  /** The key that leads to the view when it is pressed after `g`. */
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
  {
    name: 'sessions',
    title: 'Sessions',
    key: 's',
    group: 'Now',
    load: async () => (await import('../views/sessions.tsx')).Sessions,
  },
  {
    name: 'kernels',
    title: 'Kernels',
    key: 'k',
    group: 'Now',
    load: async () => (await import('../views/kernels.tsx')).KernelsView,
  },
  {
    name: 'runs',
    title: 'Runs',
    key: 'r',
    group: 'Now',
    load: async () => (await import('../views/runs.tsx')).Runs,
  },
  {
    name: 'streams',
    title: 'Streams',
    key: 'e',
    group: 'Now',
    load: async () => (await import('../views/streams.tsx')).StreamsView,
  },
  {
    name: 'agents',
    title: 'Agents',
    key: 'c',
    group: 'Work',
    load: async () => (await import('../views/agents.tsx')).Agents,
  },
  {
    name: 'files',
    title: 'Files',
    key: 'f',
    group: 'Work',
    load: async () => (await import('../views/files.tsx')).Files,
  },
  {
    name: 'datasources',
    title: 'Datasources',
    key: 'd',
    group: 'Work',
    load: async () => (await import('../views/datasources.tsx')).DatasourcesView,
  },
  {
    name: 'people',
    title: 'People',
    key: 'p',
    group: 'Administration',
    load: async () => (await import('../views/people.tsx')).People,
  },
  {
    name: 'keys',
    title: 'Keys',
    key: 'y',
    group: 'Administration',
    load: async () => (await import('../views/keys.tsx')).Keys,
  },
  {
    name: 'audit',
    title: 'Audit',
    key: 'u',
    group: 'Administration',
    load: async () => (await import('../views/audit.tsx')).Audit,
  },
];
