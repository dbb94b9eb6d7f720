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
      'Most live notebook sessions in the whole server; 0 means no limit. With several workers a few more can wake at the same moment.',
  }),
  idleTimeoutS: setting({
    env: 'TROUPE_IDLE_TIMEOUT_S',
    kind: seconds(0, 365 * DAY_S),
    default: '0',
    unit: 's',
    description:
      'Time after which an unused notebook session that nobody follows stops its kernel. Its next use starts a new kernel. 0 means never.',
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
      'Most memory for unread events of all subscribers together. Above it, the subscribers that lag most are disconnected and asked to reconnect. Each of several workers has an equal share.',
  }),
  workspaceMaxSessions: setting({
    env: 'TROUPE_WORKSPACE_MAX_SESSIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description:
      'Most live notebook sessions of one workspace; 0 means no limit. With several workers a few more can wake at the same moment.',
  }),
  workspaceMaxRuns: setting({
    env: 'TROUPE_WORKSPACE_MAX_RUNS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most runs in progress in one workspace; 0 means no limit.',
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
      'Most live notebook sessions that one member of a workspace has opened; 0 means no limit. This and the limits of workspaces can be set for one workspace (troupe workspace limits).',
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
      'Most disk space that the files of one workspace may take. Beyond it, requests store no files and no session is opened; open notebooks can still write. 0 means no limit.',
  }),
  workspaceMaxFiles: setting({
    env: 'TROUPE_WORKSPACE_MAX_FILES',
    kind: integer(0, 10_000_000),
    default: '0',
    description:
      'Most files and folders in the folder of one workspace, with the same effects beyond it; 0 means no limit.',
  }),
} as const;
