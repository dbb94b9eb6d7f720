/**
 * Every setting there is. The parser, `troupe config` and the table in the documentation are all made from this one
 * table. A setting's key is also its member in `troupe.config.json`; `TROUPE_` names are the same in capitals.
 */
import { join } from 'node:path';
import {
  boolean,
  choice,
  host,
  httpUrl,
  integer,
  type Kind,
  type Place,
  path,
  paths,
  pattern,
  program,
  seconds,
  secret,
  targets,
} from './kinds.ts';

/** A default that depends on the place or on the data directory; `shown` is how the documentation writes it. */
interface Derived<T> {
  readonly shown: string;
  readonly from: (place: Place, dataDir: string) => T;
}

interface Description<T> {
  readonly env: string;
  readonly kind: Kind<T>;
  readonly unit?: string;
  readonly description: string;
}

export interface Setting<T> extends Description<T> {
  /** Text is read like a given value. `undefined`: there is none, and the setting may stay unset. */
  readonly default: string | Derived<T> | undefined;
}

type WithDefault<T> = Description<T> & { readonly default: string | Derived<T> };

const setting = <T>(entry: WithDefault<T>): Setting<T> => entry;
const optional = <T>(entry: Description<T>): Setting<T | undefined> => ({ ...entry, default: undefined });

const apiKey = secret(/^[\x21-\x7e]+$/, 'visible ASCII characters');
const MODEL_ID = pattern(/^[a-z0-9][a-z0-9-]*\/\S+$/, 'provider/model, such as anthropic/claude-sonnet-4-5');
const DAY_S = 86_400;

export const SETTINGS = {
  host: setting({
    env: 'TROUPE_HOST',
    kind: host,
    default: '127.0.0.1',
    description:
      'Address to listen on. Anything beyond loopback also tightens which databases may be reached.',
  }),
  port: setting({
    env: 'TROUPE_PORT',
    kind: integer(0, 65_535),
    default: '8787',
    description: 'Port to listen on; 0 takes a free one and prints it.',
  }),
  http10Port: optional({
    env: 'TROUPE_HTTP10_PORT',
    kind: integer(1, 65_535),
    description:
      'One more port, for a proxy that speaks HTTP/1.0 to this server, as nginx before 1.29.7 does by default. Unset: none.',
  }),
  publicUrl: optional({
    env: 'TROUPE_PUBLIC_URL',
    kind: httpUrl,
    description:
      'Where browsers reach this server, for the links in exported pages. Unset: the address that the request for the export was sent to.',
  }),
  dataDir: setting({
    env: 'TROUPE_DATA_DIR',
    kind: path,
    default: '.troupe',
    description: 'Everything the server keeps. It belongs to one server at a time.',
  }),
  logLevel: setting({
    env: 'TROUPE_LOG_LEVEL',
    kind: choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    default: 'info',
    description: 'Least severe events that are logged.',
  }),
  bootstrapToken: optional({
    env: 'TROUPE_BOOTSTRAP_TOKEN',
    kind: secret(/^[\x21-\x7e]{16,256}$/, '16 to 256 visible ASCII characters'),
    description:
      'Access token of the first owner, used when the data directory is empty; generated when unset.',
  }),
  bootstrapWorkspace: optional({
    env: 'TROUPE_BOOTSTRAP_WORKSPACE',
    kind: pattern(/^[A-Za-z0-9_-]{1,64}$/, '1 to 64 letters, digits, underscores or hyphens'),
    description: 'Id of the first workspace, used when the data directory is empty; generated when unset.',
  }),
  keyringFile: setting({
    env: 'TROUPE_KEYRING_FILE',
    kind: path,
    default: { shown: '<data directory>/keyring.json', from: (_, dataDir) => join(dataDir, 'keyring.json') },
    description: 'Keys that seal the datasource connections; made at the first start. Back it up on its own.',
  }),
  egressAllow: optional({
    env: 'TROUPE_EGRESS_ALLOW',
    kind: targets,
    description:
      'Loopback and private addresses that datasources may reach: exactly these. Unset: all of them when the server listens on loopback only, else none.',
  }),
  maxConnections: setting({
    env: 'TROUPE_MAX_CONNECTIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description:
      'Most connections of clients that are open at once; more are closed. 0: three quarters of the open files that the server may have.',
  }),
  maxSessions: setting({
    env: 'TROUPE_MAX_SESSIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most notebook sessions that are live at once in the whole server; 0 is no limit.',
  }),
  idleTimeoutS: setting({
    env: 'TROUPE_IDLE_TIMEOUT_S',
    kind: seconds(0, 365 * DAY_S),
    default: '0',
    unit: 's',
    description:
      'After this time a notebook session that nobody uses or follows gives up its kernel, until its next use; 0 is never.',
  }),
  heartbeatS: setting({
    env: 'TROUPE_HEARTBEAT_S',
    kind: seconds(0.05, 3600),
    default: '5',
    unit: 's',
    description:
      'Time between two signs of life: comments on an event stream, white space ahead of an answer that takes long.',
  }),
  subscriberBufferBytes: setting({
    env: 'TROUPE_SUBSCRIBER_BUFFER_BYTES',
    kind: integer(4096, 1_073_741_824),
    default: '1048576',
    unit: 'bytes',
    description: 'Unsent bytes after which a slow subscriber is told to reconnect.',
  }),
  workspaceMaxSessions: setting({
    env: 'TROUPE_WORKSPACE_MAX_SESSIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most live notebook sessions of one workspace; 0 is no limit.',
  }),
  workspaceMaxRuns: setting({
    env: 'TROUPE_WORKSPACE_MAX_RUNS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most runs in flight in one workspace; 0 is no limit.',
  }),
  workspaceMaxSubscribers: setting({
    env: 'TROUPE_WORKSPACE_MAX_SUBSCRIBERS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most open event streams of one workspace; 0 is no limit.',
  }),
  python: setting({
    env: 'TROUPE_PYTHON',
    kind: program,
    default: {
      shown: '<installation>/.venv/bin/python',
      from: (place) => join(place.packageRoot, '.venv', 'bin', 'python'),
    },
    description: 'Python interpreter of the kernels. It needs the marimo this release was made for.',
  }),
  preload: setting({
    env: 'TROUPE_PRELOAD',
    kind: boolean,
    default: 'true',
    description:
      'Load pandas and the like once beside the kernels, so that importing them takes milliseconds.',
  }),
  kernelMemoryMb: setting({
    env: 'TROUPE_KERNEL_MEMORY_MB',
    kind: integer(0, 16_777_216),
    default: '4096',
    unit: 'MiB',
    description:
      'Most memory that all processes of one kernel use together, with the files in its /tmp and /dev/shm. A kernel above it is killed: at once where the server may make control groups, elsewhere within some two seconds. Without control groups it is also the most that each process may reserve. Below 1024 the usual libraries may not load; 0 is no limit.',
  }),
  kernelProcesses: setting({
    env: 'TROUPE_KERNEL_PROCESSES',
    kind: integer(0, 4_000_000),
    default: '1024',
    description:
      'Most processes and threads of one kernel, where kernels have namespaces of their own; 0 is no limit.',
  }),
  kernelOpenFiles: setting({
    env: 'TROUPE_KERNEL_OPEN_FILES',
    kind: integer(0, 1_048_576),
    default: '4096',
    description: 'Most open files of one process of a kernel; 0 is what the server has.',
  }),
  kernelFileMb: setting({
    env: 'TROUPE_KERNEL_FILE_MB',
    kind: integer(0, 16_777_216),
    default: '10240',
    unit: 'MiB',
    description: 'Most size of one file that a kernel writes; 0 is no limit.',
  }),
  kernelCpuS: setting({
    env: 'TROUPE_KERNEL_CPU_S',
    kind: integer(0, 4_000_000),
    default: '0',
    unit: 's',
    description: 'Most processor time of one process of a kernel, which then ends; 0 is no limit.',
  }),
  kernelNice: setting({
    env: 'TROUPE_KERNEL_NICE',
    kind: integer(0, 19),
    default: '5',
    description: 'How much kernels yield to the server when there is too little processor time.',
  }),
  kernelReadPaths: setting({
    env: 'TROUPE_KERNEL_READ_PATHS',
    kind: paths,
    default: 'none',
    description: 'What kernels may read beside the system, the Python environment and their own files.',
  }),
  kernelWritePaths: setting({
    env: 'TROUPE_KERNEL_WRITE_PATHS',
    kind: paths,
    default: 'none',
    description: 'What kernels may read and write beside their own files.',
  }),
  kernelConfinement: setting({
    env: 'TROUPE_KERNEL_CONFINEMENT',
    kind: choice('auto', 'require', 'off'),
    default: 'auto',
    description:
      'How kernels are kept from the server and from each other: `auto` takes what the system offers and says at start what is missing, `require` refuses to start without all of it.',
  }),
  kernelNetwork: setting({
    env: 'TROUPE_KERNEL_NETWORK',
    kind: choice('host', 'none'),
    default: 'host',
    description:
      'Whether notebook code has the network of the host or none but its own loopback. Datasources work either way.',
  }),
  kernelUid: optional({
    env: 'TROUPE_KERNEL_UID',
    kind: integer(1, 4_294_967_294),
    description: 'User id that kernels run as; only a server that was started as root can change it.',
  }),
  defaultModel: optional({
    env: 'TROUPE_DEFAULT_MODEL',
    kind: MODEL_ID,
    description: 'Model of an agent conversation that names none.',
  }),
  localModel: optional({
    env: 'TROUPE_LOCAL_MODEL',
    kind: path,
    description: 'A GGUF file, served by llama.cpp in a process of its own as `local/<file name>`.',
  }),
  openaiCompatibleUrl: optional({
    env: 'TROUPE_OPENAI_COMPATIBLE_URL',
    kind: httpUrl,
    description: 'An OpenAI-compatible server such as vLLM, Ollama or llama.cpp, with its `/v1`.',
  }),
  openaiCompatibleApiKey: optional({
    env: 'TROUPE_OPENAI_COMPATIBLE_API_KEY',
    kind: apiKey,
    description: 'Key for that server, when it asks for one.',
  }),
  anthropicApiKey: optional({
    env: 'ANTHROPIC_API_KEY',
    kind: apiKey,
    description: 'Key for the models `anthropic/…`.',
  }),
  openaiApiKey: optional({
    env: 'OPENAI_API_KEY',
    kind: apiKey,
    description: 'Key for the models `openai/…`.',
  }),
  anthropicBaseUrl: setting({
    env: 'TROUPE_ANTHROPIC_BASE_URL',
    kind: httpUrl,
    default: 'https://api.anthropic.com/v1',
    description: 'Where the models `anthropic/…` are asked, with its `/v1`: a proxy, for instance.',
  }),
  openaiBaseUrl: setting({
    env: 'TROUPE_OPENAI_BASE_URL',
    kind: httpUrl,
    default: 'https://api.openai.com/v1',
    description: 'Where the models `openai/…` are asked, with its `/v1`.',
  }),
  modelSilenceS: setting({
    env: 'TROUPE_MODEL_SILENCE_S',
    kind: seconds(0.05, 3600),
    default: '120',
    unit: 's',
    description: 'Without a byte from a model for so long, a step has failed and is tried again.',
  }),
  modelContextTokens: setting({
    env: 'TROUPE_MODEL_CONTEXT_TOKENS',
    kind: integer(0, 10_000_000),
    default: '0',
    unit: 'tokens',
    description:
      'How much a model reads at once; older tool outputs are left out to stay within it. 0: what is usual for the provider.',
  }),
  agentMaxSteps: setting({
    env: 'TROUPE_AGENT_MAX_STEPS',
    kind: integer(1, 1000),
    default: '50',
    description: 'Most steps (one answer of the model each) that one prompt may take.',
  }),
  agentMaxTokens: setting({
    env: 'TROUPE_AGENT_MAX_TOKENS',
    kind: integer(0, 1_000_000_000),
    default: '0',
    unit: 'tokens',
    description: 'Most tokens, read and written, that one prompt may use; 0 is no limit.',
  }),
  agentTimeoutS: setting({
    env: 'TROUPE_AGENT_TIMEOUT_S',
    kind: seconds(0.05, 7 * DAY_S),
    default: '1800',
    unit: 's',
    description: 'Most time that one prompt may take.',
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;

/** Names in the order of the table. */
export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS).filter(isSettingName);

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}
