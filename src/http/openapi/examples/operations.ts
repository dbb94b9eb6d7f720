/** Examples of the views for operators: actors, charts, the server, keys and health. */
import type { ActorDetail, ActorPage, ActorStreamEvent, Chart } from '#src/contract/wire/actor.ts';
import type { Health, KeyList, Readiness } from '#src/contract/wire/health.ts';
import type { Node, NodeInvitation, NodeList } from '#src/contract/wire/nodes.ts';
import type {
  KernelList,
  KernelUsage,
  ServerLog,
  ServerState,
  ServerStreamEvent,
} from '#src/contract/wire/server.ts';
import type { WorkspaceUsage } from '#src/contract/wire/usage.ts';
import { AT, NOTEBOOK_ID, RUN, WORKSPACE_ID } from './example-values.ts';

const node: Node = {
  name: 'rack-7',
  state: 'joined',
  draining: false,
  problem: null,
  kernels: 12,
  capacity: 230,
  memoryBytes: 68_719_476_736,
  freeMemoryBytes: 51_539_607_552,
  cores: 16,
  load: 1.4,
  confinement:
    'full: pid+mount+ipc+net namespaces, Landlock 7, seccomp, memory by cgroup, rlimits; network none',
  release: {
    version: '1.0.0',
    build: '745a59f7',
    scripts: '10e96185ad7859d6',
    marimo: '0.25.2',
    python: '3.11.7',
  },
  address: '10.0.0.7',
  enrolledAt: '2026-11-01T08:00:00.000Z',
  joinedAt: '2026-11-27T14:19:27.414Z',
};
const nodes: NodeList = { enabled: true, waiting: 0, engine: { kind: 'ray', problem: null }, items: [node] };
const invitation: NodeInvitation = {
  code: 'g1geX_Z6O7h9sQj2y3y8N4PwNvynh6JJABvBQWPlGVFEicxXYfbQ5I_Rx7Y7_TNL',
  port: 8790,
  expiresAt: '2026-11-27T14:34:00.000Z',
};
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
  links: [{ kind: 'notebook-session', id: NOTEBOOK_ID }],
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
      advice: 'Cancel the run first, or wait until it has ended.',
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
const actorEvent: ActorStreamEvent = {
  type: 'actor.refused',
  time: AT,
  data: {
    kind: 'notebook-session',
    id: NOTEBOOK_ID,
    state: 'live.busy.running',
    event: 'execute',
    code: 'session_busy',
    count: 1,
    title: 'The session is busy',
    advice: 'Wait until the session is ready again, or cancel its run.',
  },
};
const kernel: KernelUsage = {
  workspaceId: WORKSPACE_ID,
  sessionId: NOTEBOOK_ID,
  node: null,
  pid: 4711,
  cpuSeconds: 3.2,
  memoryBytes: 180_224_000,
};
const kernels: KernelList = { sampledAt: AT, memoryLimitBytes: 2_147_483_648, items: [kernel] };
const serverLoad = {
  sampledAt: AT,
  process: {
    pid: 4700,
    cpuSeconds: 120.5,
    memoryBytes: 150_000_000,
    heapBytes: 60_000_000,
    eventLoop: { busySeconds: 100.2, delayP99Ms: 10.9, delayMaxMs: 14.2 },
  },
  kernelHost: { state: 'up', confinement: 'full' },
  actors: [{ kind: 'run', state: 'running.active', count: 1 }],
  requests: 1,
  streams: 3,
  warnings: [],
  store: { usedBytes: 12_582_912, reusableBytes: 1_048_576, isFull: false, commitMs: 1.8 },
};
const server: ServerState = {
  ...serverLoad,
  startedAt: AT,
  versions: { troupe: '0.1.0', node: 'v20.20.2', marimo: '0.17.0' },
  kernels: [kernel],
  limits: {
    sessions: null,
    sessionsPerWorkspace: null,
    runsPerWorkspace: null,
    streamsPerWorkspace: null,
    connections: 10_000,
    kernelMemoryBytes: 2_147_483_648,
    idleTimeoutS: null,
  },
};
const serverEvent: ServerStreamEvent = {
  type: 'server.load',
  time: AT,
  data: { ...serverLoad, kernels: { count: 1, cpuSeconds: 3.2, memoryBytes: 180_224_000 } },
};
const usage: WorkspaceUsage = {
  models: {
    from: '2026-06-01',
    to: '2026-06-30',
    items: [
      {
        ...{ day: '2026-06-12', userId: 'ada@example.com', model: 'anthropic/claude-sonnet-4-5' },
        ...{ inputTokens: 48_200, outputTokens: 3_100, cacheReadTokens: 40_000, cacheWriteTokens: 4_096 },
        ...{ calls: 14, estimatedCalls: 0 },
      },
    ],
    nextCursor: null,
  },
  files: {
    bytes: 20_480,
    entries: 2,
    complete: true,
    countedAt: AT,
    maxBytes: 5_368_709_120,
    maxEntries: null,
  },
  stored: {
    bytes: 9_216,
    records: 12,
    notebooks: 2_048,
    runs: 4_096,
    assets: 0,
    conversations: 1_024,
    audit: 1_024,
    other: 1_024,
    complete: true,
    countedAt: AT,
  },
};
const health: Health = { status: 'ok' };
const readiness: Readiness = { ready: true };

export const OPERATIONS_EXAMPLES = {
  ActorDetail: actorDetail,
  ActorPage: actors,
  ActorStreamEvent: actorEvent,
  Chart: chart,
  Health: health,
  KernelList: kernels,
  KeyList: keys,
  Node: node,
  NodeList: nodes,
  NodeInvitation: invitation,
  Readiness: readiness,
  ServerLog: {
    items: ['{"level":"info","time":"2026-01-31T12:00:00.000Z","ms":412,"msg":"ready"}'],
  } satisfies ServerLog,
  ServerState: server,
  ServerStreamEvent: serverEvent,
  WorkspaceUsage: usage,
};
