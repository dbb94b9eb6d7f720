/**
 * The table of all settings. The parser, `troupe config` and the documentation are made from it. A key of the table is
 * also the member's name in `troupe.config.json`.
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

/** A default that is computed from the place or the data directory. `shown` is what the documentation prints. */
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

/** One setting of the table. */
export interface Setting<T> extends Description<T> {
  /** The default as text, which is parsed like a given value. `undefined` means that the setting may stay unset. */
  readonly default: string | Derived<T> | undefined;
}

type WithDefault<T> = Description<T> & { readonly default: string | Derived<T> };

const setting = <T>(entry: WithDefault<T>): Setting<T> => entry;
const optional = <T>(entry: Description<T>): Setting<T | undefined> => ({ ...entry, default: undefined });

const apiKey = secret(/^[\x21-\x7e]+$/, 'visible ASCII characters');
const MODEL_ID = pattern(/^[a-z0-9][a-z0-9-]*\/\S+$/, 'provider/model, such as anthropic/claude-sonnet-4-5');
const DAY_S = 86_400;

/** Every setting, in the order of the documentation. */
export const SETTINGS = {
  host: setting({
    env: 'TROUPE_HOST',
    kind: host,
    default: '127.0.0.1',
    description:
      'Address to listen on. Unless it is a loopback address, datasources may reach public addresses only (see TROUPE_EGRESS_ALLOW).',
  }),
  port: setting({
    env: 'TROUPE_PORT',
    kind: integer(0, 65_535),
    default: '8787',
    description: 'Port to listen on. With 0 the system chooses a free port, which is printed.',
  }),
  http10Port: optional({
    env: 'TROUPE_HTTP10_PORT',
    kind: integer(1, 65_535),
    description:
      'An additional port for proxies that speak HTTP/1.0 to this server, as nginx before 1.29.7 does by default. Unset: no such port.',
  }),
  publicUrl: optional({
    env: 'TROUPE_PUBLIC_URL',
    kind: httpUrl,
    description:
      'URL at which browsers reach this server, for the links in exported pages. Unset: the address that the export was requested from.',
  }),
  dataDir: setting({
    env: 'TROUPE_DATA_DIR',
    kind: path,
    default: '.troupe',
    description: 'Directory for everything the server stores. Only one server at a time can use it.',
  }),
  logLevel: setting({
    env: 'TROUPE_LOG_LEVEL',
    kind: choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    default: 'info',
    description: 'The least severe level that is logged.',
  }),
  bootstrapToken: optional({
    env: 'TROUPE_BOOTSTRAP_TOKEN',
    kind: secret(/^[\x21-\x7e]{16,256}$/, '16 to 256 visible ASCII characters'),
    description:
      'Access token of the first owner, used when the data directory is empty. Unset: a token is generated.',
  }),
  bootstrapWorkspace: optional({
    env: 'TROUPE_BOOTSTRAP_WORKSPACE',
    kind: pattern(/^[A-Za-z0-9_-]{1,64}$/, '1 to 64 letters, digits, underscores or hyphens'),
    description:
      'Id of the first workspace, used when the data directory is empty. Unset: an id is generated.',
  }),
  keyringFile: setting({
    env: 'TROUPE_KEYRING_FILE',
    kind: path,
    default: { shown: '<data directory>/keyring.json', from: (_, dataDir) => join(dataDir, 'keyring.json') },
    description:
      'File with the keys that seal datasource connections; created at the first start. Back it up separately from the data directory.',
  }),
  egressAllow: optional({
    env: 'TROUPE_EGRESS_ALLOW',
    kind: targets,
    description:
      'Loopback and private addresses that datasources may reach; all others are refused. Unset: all of them if the server listens on loopback only, otherwise none.',
  }),
  maxConnections: setting({
    env: 'TROUPE_MAX_CONNECTIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description:
      'Most client connections that are open at once, on all ports together; further ones are closed. 0: three quarters of the open files that the server may have.',
  }),
  maxSessions: setting({
    env: 'TROUPE_MAX_SESSIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most live notebook sessions in the whole server; 0 means no limit.',
  }),
  idleTimeoutS: setting({
    env: 'TROUPE_IDLE_TIMEOUT_S',
    kind: seconds(0, 365 * DAY_S),
    default: '0',
    unit: 's',
    description:
      'Time after which an unused notebook session that nobody follows stops its kernel. Its next use starts one again. 0 means never.',
  }),
  heartbeatS: setting({
    env: 'TROUPE_HEARTBEAT_S',
    kind: seconds(0.05, 3600),
    default: '5',
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
      'Most memory for unread events of all subscribers together. Above it, the subscribers that lag most are disconnected and asked to reconnect.',
  }),
  workspaceMaxSessions: setting({
    env: 'TROUPE_WORKSPACE_MAX_SESSIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description: 'Most live notebook sessions of one workspace; 0 means no limit.',
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
  python: setting({
    env: 'TROUPE_PYTHON',
    kind: program,
    default: {
      shown: '<installation>/.venv/bin/python',
      from: (place) => join(place.packageRoot, '.venv', 'bin', 'python'),
    },
    description: 'Python interpreter that runs the kernels. It needs the marimo version of this release.',
  }),
  preload: setting({
    env: 'TROUPE_PRELOAD',
    kind: boolean,
    default: 'true',
    description:
      'Whether pandas and other common libraries are loaded once for all kernels, so that notebooks import them in milliseconds.',
  }),
  kernelMemoryMb: setting({
    env: 'TROUPE_KERNEL_MEMORY_MB',
    kind: integer(0, 16_777_216),
    default: '4096',
    unit: 'MiB',
    description:
      'Most memory that all processes of one kernel use together, including the files in its /tmp and /dev/shm. A kernel that uses more is killed: at once where the server may make control groups, elsewhere within some two seconds. Without control groups it is also the most that each process may reserve. Below 1024 common libraries may not load; 0 means no limit.',
  }),
  kernelProcesses: setting({
    env: 'TROUPE_KERNEL_PROCESSES',
    kind: integer(0, 4_000_000),
    default: '1024',
    description:
      'Most processes and threads of one kernel, where kernels have namespaces of their own; 0 means no limit.',
  }),
  kernelOpenFiles: setting({
    env: 'TROUPE_KERNEL_OPEN_FILES',
    kind: integer(0, 1_048_576),
    default: '4096',
    description: 'Most open files of each process of a kernel; 0 means the limit of the server.',
  }),
  kernelFileMb: setting({
    env: 'TROUPE_KERNEL_FILE_MB',
    kind: integer(0, 16_777_216),
    default: '10240',
    unit: 'MiB',
    description: 'Largest file that a kernel may write; 0 means no limit.',
  }),
  kernelCpuS: setting({
    env: 'TROUPE_KERNEL_CPU_S',
    kind: integer(0, 4_000_000),
    default: '0',
    unit: 's',
    description: 'Processor time after which a process of a kernel is ended; 0 means no limit.',
  }),
  kernelNice: setting({
    env: 'TROUPE_KERNEL_NICE',
    kind: integer(0, 19),
    default: '5',
    description: 'How far kernels give way to the server when processor time is scarce (as in nice(1)).',
  }),
  kernelReadPaths: setting({
    env: 'TROUPE_KERNEL_READ_PATHS',
    kind: paths,
    default: 'none',
    description:
      'Paths that kernels may read, in addition to the system, the Python environment and the files of their workspace.',
  }),
  kernelWritePaths: setting({
    env: 'TROUPE_KERNEL_WRITE_PATHS',
    kind: paths,
    default: 'none',
    description: 'Paths that kernels may read and write, in addition to the files of their workspace.',
  }),
  kernelConfinement: setting({
    env: 'TROUPE_KERNEL_CONFINEMENT',
    kind: choice('auto', 'require', 'off'),
    default: 'auto',
    description:
      'How kernels are isolated from the server and from each other. `auto` uses what the system offers and logs at start what is missing; `require` refuses to start unless everything is available; `off` isolates nothing.',
  }),
  kernelNetwork: setting({
    env: 'TROUPE_KERNEL_NETWORK',
    kind: choice('host', 'none'),
    default: 'host',
    description:
      '`host` gives notebook code the network of this machine, `none` only a loopback of its own. Datasources work in both cases.',
  }),
  kernelUid: optional({
    env: 'TROUPE_KERNEL_UID',
    kind: integer(1, 4_294_967_294),
    description: 'User id that kernels run as. Only a server that is started as root can change it.',
  }),
  defaultModel: optional({
    env: 'TROUPE_DEFAULT_MODEL',
    kind: MODEL_ID,
    description: 'Model for agent conversations that do not name one.',
  }),
  localModel: optional({
    env: 'TROUPE_LOCAL_MODEL',
    kind: path,
    description: 'GGUF file that llama.cpp serves, in a separate process, as `local/<file name>`.',
  }),
  localModelMemoryMb: setting({
    env: 'TROUPE_LOCAL_MODEL_MEMORY_MB',
    kind: integer(0, 16_777_216),
    default: '0',
    unit: 'MiB',
    description: 'Most memory of the process that serves the local model; 0 is no limit.',
  }),
  openaiCompatibleUrl: optional({
    env: 'TROUPE_OPENAI_COMPATIBLE_URL',
    kind: httpUrl,
    description: 'URL of an OpenAI-compatible server such as vLLM, Ollama or llama.cpp, including `/v1`.',
  }),
  openaiCompatibleApiKey: optional({
    env: 'TROUPE_OPENAI_COMPATIBLE_API_KEY',
    kind: apiKey,
    description: 'API key for TROUPE_OPENAI_COMPATIBLE_URL, if that server needs one.',
  }),
  anthropicApiKey: optional({
    env: 'ANTHROPIC_API_KEY',
    kind: apiKey,
    description: 'API key for the models `anthropic/…`.',
  }),
  openaiApiKey: optional({
    env: 'OPENAI_API_KEY',
    kind: apiKey,
    description: 'API key for the models `openai/…`.',
  }),
  anthropicBaseUrl: setting({
    env: 'TROUPE_ANTHROPIC_BASE_URL',
    kind: httpUrl,
    default: 'https://api.anthropic.com/v1',
    description: 'URL of the service for the models `anthropic/…`, including `/v1`; a proxy, for instance.',
  }),
  openaiBaseUrl: setting({
    env: 'TROUPE_OPENAI_BASE_URL',
    kind: httpUrl,
    default: 'https://api.openai.com/v1',
    description: 'URL of the service for the models `openai/…`, including `/v1`; a proxy, for instance.',
  }),
  modelSilenceS: setting({
    env: 'TROUPE_MODEL_SILENCE_S',
    kind: seconds(0.05, 3600),
    default: '120',
    unit: 's',
    description: 'Time without a byte from a model after which a step counts as failed and is retried.',
  }),
  modelContextTokens: setting({
    env: 'TROUPE_MODEL_CONTEXT_TOKENS',
    kind: integer(0, 10_000_000),
    default: '0',
    unit: 'tokens',
    description:
      'Context size of the models. Older tool outputs are left out of a request that would exceed it. 0: the usual size of each provider.',
  }),
  agentMaxSteps: setting({
    env: 'TROUPE_AGENT_MAX_STEPS',
    kind: integer(1, 1000),
    default: '50',
    description: 'Most steps of one prompt. A step is one answer of the model.',
  }),
  agentMaxTokens: setting({
    env: 'TROUPE_AGENT_MAX_TOKENS',
    kind: integer(0, 1_000_000_000),
    default: '0',
    unit: 'tokens',
    description: 'Most tokens of one prompt, input and output together; 0 means no limit.',
  }),
  agentTimeoutS: setting({
    env: 'TROUPE_AGENT_TIMEOUT_S',
    kind: seconds(0.05, 7 * DAY_S),
    default: '1800',
    unit: 's',
    description: 'Longest time that one prompt may take.',
  }),
} as const;

/** The name of a setting in `troupe.config.json` and in `Config`. */
export type SettingName = keyof typeof SETTINGS;

/** All names, in the order of the table. */
export const SETTING_NAMES: readonly SettingName[] = Object.keys(SETTINGS).filter(isSettingName);

/** Returns whether the text is the name of a setting. */
export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}
