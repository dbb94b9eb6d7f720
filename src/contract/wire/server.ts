/** The operators' view of the server as a whole, and of kernels. */
import Type from 'typebox';
import { ActorCountSchema } from './actor.ts';
import {
  closed,
  type EnvelopeOf,
  type EventsOf,
  eventUnion,
  nullable,
  ResyncReasonSchema,
  SilentWorkers,
  type Streamed,
  Timestamp,
  type Wire,
} from './shape.ts';

const Bytes = Type.Integer({ description: 'Bytes.' });

const usage = {
  pid: Type.Integer(),
  cpuSeconds: Type.Number({
    description:
      'Processor time since the process began. Divide the difference between two responses by the time between them to get the use.',
  }),
  memoryBytes: Type.Integer({
    description:
      'Resident memory. A memory page that several processes share counts in each of them. The figure of ' +
      'the server does not include the mapped pages of the store.',
  }),
};

const limit = (description: string) => nullable(Type.Integer({ description }));

export const KernelUsageSchema = Type.Object(
  {
    workspaceId: Type.String(),
    sessionId: Type.String({ description: 'The notebook session that the kernel works for.' }),
    node: nullable(
      Type.String({
        description: 'The kernel node on which the kernel runs. Null: the machine of the server.',
      }),
    ),
    ...usage,
  },
  { $id: 'KernelUsage', ...closed },
);
export type KernelUsage = Wire<typeof KernelUsageSchema>;

export const KernelListQuery = Type.Object(
  {
    sessionId: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Only the kernel of this session.' }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 1000, description: 'Return at most this many kernels.' }),
    ),
  },
  closed,
);

export const KernelListSchema = Type.Object(
  {
    sampledAt: Type.String({
      format: 'date-time',
      description:
        'When the use was measured. All requests share a measurement for half a second; with many processes, for up to five seconds.',
    }),
    memoryLimitBytes: limit('The memory that one kernel may use; null: no limit.'),
    items: Type.Array(KernelUsageSchema, { description: 'The kernels, with the most memory first.' }),
    silentWorkers: SilentWorkers,
  },
  { $id: 'KernelList', ...closed },
);
export type KernelList = Wire<typeof KernelListSchema>;

/** The members that do not change while the server runs. */
const facts = {
  startedAt: Timestamp,
  versions: Type.Object(
    {
      troupe: Type.String(),
      node: Type.String(),
      marimo: nullable(Type.String({ description: 'Null until the kernel host is up.' })),
    },
    { $id: 'ServerVersions', ...closed },
  ),
  limits: Type.Object(
    {
      sessions: limit('Live notebook sessions; null: no limit.'),
      sessionsPerWorkspace: limit('Live notebook sessions of a workspace.'),
      runsPerWorkspace: limit('Runs of a workspace that have not ended.'),
      streamsPerWorkspace: limit('Open event streams of a workspace.'),
      connections: limit('Open connections.'),
      kernelMemoryBytes: limit('The memory that one kernel may use.'),
      idleTimeoutS: limit('Seconds after which an unused session goes to sleep; null: never.'),
    },
    { $id: 'ServerLimits', ...closed },
  ),
};

const process = {
  ...usage,
  heapBytes: Bytes,
  eventLoop: Type.Object(
    {
      busySeconds: Type.Number({
        description: 'Time in which the event loop was busy, since the start.',
      }),
      delayP99Ms: nullable(
        Type.Number({
          description: 'Time since the last response; null in the first response within five minutes.',
        }),
      ),
      delayMaxMs: nullable(Type.Number()),
    },
    { $id: 'EventLoopState', ...closed },
  ),
};

const WorkerStateSchema = Type.Object(
  {
    worker: Type.Integer({
      description: 'The number of the worker. A worker that replaces another one has a new number.',
    }),
    startedAt: Timestamp,
    ...process,
    kernels: Type.Integer({ description: 'Kernels of the sessions whose home is this worker.' }),
    requests: Type.Integer(),
    streams: Type.Integer(),
  },
  { $id: 'WorkerState', ...closed },
);
export type WorkerState = Wire<typeof WorkerStateSchema>;

const load = {
  sampledAt: Timestamp,
  process: Type.Object(process, {
    $id: 'ServerProcess',
    ...closed,
    description:
      'The process of the server, without kernels. With several workers: the sum of their use, their ' +
      'longest delays, and the id of the primary process, which started them.',
  }),
  workers: Type.Optional(
    Type.Array(WorkerStateSchema, {
      description:
        'The processes of a server of several workers, by number. Absent in a server of one process.',
    }),
  ),
  silentWorkers: SilentWorkers,
  kernelHost: Type.Object(
    {
      state: Type.String({ description: '`starting`, `up`, `silent`, `restarting` or `down`.' }),
      confinement: nullable(Type.String()),
    },
    { $id: 'KernelHostState', ...closed },
  ),
  actors: Type.Array(ActorCountSchema, { description: 'The actors of all workspaces that are in memory.' }),
  requests: Type.Integer({ description: 'Requests without a response so far, except event streams.' }),
  streams: Type.Integer({ description: 'Open event streams.' }),
  warnings: Type.Array(Type.String(), {
    description:
      'Problems that an operator should look at, as in `GET /readyz`. With several workers, the problems of all workers.',
  }),
  store: Type.Object(
    {
      usedBytes: Type.Integer({ description: 'The size of the store, up to its last page.' }),
      reusableBytes: Type.Integer({ description: 'Free space within `usedBytes`.' }),
      isFull: Type.Boolean({ description: 'Whether the disk is full: nothing new is stored.' }),
      commitMs: nullable(
        Type.Number({
          description:
            'The average time until a commit was on disk, since the last response. With several workers, the time of the slowest. Null: there was no commit.',
        }),
      ),
    },
    { $id: 'StoreState', ...closed },
  ),
};

const ServerFactsSchema = Type.Object(facts, closed);
export type ServerFacts = Wire<typeof ServerFactsSchema>;

export const ServerStateSchema = Type.Object(
  { ...facts, ...load, kernels: Type.Array(KernelUsageSchema) },
  { $id: 'ServerState', ...closed },
);
export type ServerState = Wire<typeof ServerStateSchema>;

const ServerLoadSchema = Type.Object(
  {
    ...load,
    kernels: Type.Object(
      { count: Type.Integer(), cpuSeconds: usage.cpuSeconds, memoryBytes: usage.memoryBytes },
      { $id: 'KernelTotals', ...closed, description: 'The sum over all kernels.' },
    ),
  },
  closed,
);
export type ServerLoad = Wire<typeof ServerLoadSchema>;

const SERVER_EVENTS = {
  'server.snapshot': ServerFactsSchema,
  'server.replayed': Type.Object({}, closed),
  'server.load': ServerLoadSchema,
  'server.resync-required': Type.Object({ reason: ResyncReasonSchema }, closed),
} as const;

type ServerEvents = EventsOf<typeof SERVER_EVENTS>;

/** A published event about the server. */
export type ServerStreamEnvelope = EnvelopeOf<ServerEvents>;

/** An event about the server. */
export type ServerStreamEvent = Streamed<ServerStreamEnvelope>;

/** The JSON of each `data:` line of the stream about the server. */
export const ServerStreamEventSchema = eventUnion('ServerStreamEvent', SERVER_EVENTS);

export const ServerLogSchema = Type.Object(
  {
    items: Type.Array(Type.String(), {
      description: 'The last lines, oldest first: at most 500, and 256 Ki characters. Each is JSON.',
    }),
    silentWorkers: SilentWorkers,
  },
  { $id: 'ServerLog', ...closed },
);
export type ServerLog = Wire<typeof ServerLogSchema>;
