import { integer, seconds } from './kinds.ts';
import { setting } from './setting.ts';

const DAY_S = 86_400;

/** Sessions, their event streams, and the quotas of workspaces. In the order of the documentation. */
export const SESSION_SETTINGS = {
  maxSessions: setting({
    env: 'TROUPE_MAX_SESSIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description:
      'Most live notebook sessions in the whole server; 0 means no limit. Sessions that wake in several workers at the same moment can exceed it by a few.',
  }),
  idleTimeoutS: setting({
    env: 'TROUPE_IDLE_TIMEOUT_S',
    kind: seconds(0, 365 * DAY_S),
    default: '0',
    unit: 's',
    description:
      'Time without a use or a subscriber after which a notebook session stops its kernel. The next use of the session starts a new kernel. 0 means never.',
  }),
  heartbeatS: setting({
    env: 'TROUPE_HEARTBEAT_S',
    kind: seconds(0.05, 3600),
    default: '2.5',
    unit: 's',
    description:
      'Time between two signs of life: comments on an event stream, and white space before a slow response.',
  }),
  subscriberBufferBytes: setting({
    env: 'TROUPE_SUBSCRIBER_BUFFER_BYTES',
    kind: integer(4096, 1_073_741_824),
    default: '1048576',
    unit: 'bytes',
    description: 'Unsent bytes after which a slow subscriber is disconnected and asked to reconnect.',
  }),
  streamMemoryMb: setting({
    env: 'TROUPE_STREAM_MEMORY_MB',
    kind: integer(1, 1_048_576),
    default: '256',
    unit: 'MiB',
    description:
      'Most memory for unread events of all subscribers together. When more is needed, the subscribers that lag most are disconnected and asked to reconnect. Several workers have equal shares.',
  }),
  workspaceMaxSessions: setting({
    env: 'TROUPE_WORKSPACE_MAX_SESSIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description:
      'Most live notebook sessions of one workspace; 0 means no limit. Sessions that wake in several workers at the same moment can exceed it by a few.',
  }),
  workspaceMaxRuns: setting({
    env: 'TROUPE_WORKSPACE_MAX_RUNS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most runs in progress in one workspace; 0 means no limit.',
  }),
  workspaceMaxJobs: setting({
    env: 'TROUPE_WORKSPACE_MAX_JOBS',
    kind: integer(0, 1_000_000),
    default: '10000',
    description: 'Most jobs of one workspace; 0 means no limit.',
  }),
  workspaceMaxSubscribers: setting({
    env: 'TROUPE_WORKSPACE_MAX_SUBSCRIBERS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most open event streams of one workspace; 0 means no limit.',
  }),
  userMaxSessions: setting({
    env: 'TROUPE_USER_MAX_SESSIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description:
      'Most live notebook sessions that one member of a workspace has opened; 0 means no limit. `troupe workspace limits` changes the limits of one workspace and of its members.',
  }),
  userMaxRuns: setting({
    env: 'TROUPE_USER_MAX_RUNS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most runs in progress that one member of a workspace has submitted; 0 means no limit.',
  }),
  workspaceFilesMb: setting({
    env: 'TROUPE_WORKSPACE_FILES_MB',
    kind: integer(0, 16_777_216),
    default: '0',
    unit: 'MiB',
    description:
      'Most disk space that the files of one workspace may take. In a workspace that has more, requests can store no files and open no sessions; open notebooks can still write. 0 means no limit.',
  }),
  workspaceMaxFiles: setting({
    env: 'TROUPE_WORKSPACE_MAX_FILES',
    kind: integer(0, 10_000_000),
    default: '0',
    description:
      'Most files and folders of one workspace. A workspace that has more is limited like one beyond TROUPE_WORKSPACE_FILES_MB. 0 means no limit.',
  }),
} as const;
