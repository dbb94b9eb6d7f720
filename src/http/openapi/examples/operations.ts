/** Examples of what operators read: actors, charts, keys and health. */
import type { ActorDetail, ActorPage, Chart } from '#src/wire/actor.ts';
import type { Health, KeyList, Readiness } from '#src/wire/operations.ts';
import { AT, NOTEBOOK, RUN } from './example-values.ts';

const keys: KeyList = { items: [{ id: 'k1', active: true, sealed: 3 }] };
const actor: ActorPage['items'][number] = {
  kind: 'run',
  id: RUN,
  machine: 'run',
  presence: 'live',
  state: { running: 'cancelling' },
  path: 'running.cancelling',
  since: AT,
  revision: 1,
  links: [{ kind: 'notebook-session', id: NOTEBOOK }],
  lastEvents: [{ type: 'cancel', at: AT }],
};
const actors: ActorPage = {
  items: [actor],
  nextCursor: null,
  counts: [{ kind: 'run', state: 'running.cancelling', count: 1 }],
};
const { lastEvents: _, ...shownActor } = actor;
const actorDetail: ActorDetail = {
  ...shownActor,
  createdAt: AT,
  context: { kind: 'notebook' },
  trail: [{ at: AT, type: 'cancel', from: 'running.active', to: 'running.cancelling' }],
  takes: ['cancel', 'finish', 'restored'],
  refuses: [
    {
      type: 'delete',
      code: 'run_in_progress',
      title: 'The run has not ended',
      advice: 'Cancel it, or wait until it has ended.',
    },
  ],
};
const chart: Chart = {
  machine: 'environment',
  version: '0f3c1a9b2e4d1a77',
  root: {
    id: 'environment',
    name: 'environment',
    type: 'compound',
    initial: 'open',
    tags: [],
    refuses: {},
    runs: [],
    transitions: [],
    states: [],
  },
};
const health: Health = { status: 'ok' };
const readiness: Readiness = { ready: true };

export const OPERATIONS_EXAMPLES = {
  ActorDetail: actorDetail,
  ActorPage: actors,
  Chart: chart,
  Health: health,
  KeyList: keys,
  Readiness: readiness,
};
