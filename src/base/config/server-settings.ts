import { join } from 'node:path';
import {
  addresses,
  auditTarget,
  boolean,
  choice,
  host,
  httpUrl,
  integer,
  origins,
  pageHosts,
  path,
  pattern,
  seconds,
  secret,
  socketPath,
  targets,
  workers,
} from './kinds.ts';
import { optional, setting } from './setting.ts';

/**
 * Settings of the server itself: its addresses, storage, and permitted destinations. In the order of the documentation.
 */
export const SERVER_SETTINGS = {
  host: setting({
    env: 'TROUPE_HOST',
    kind: host,
    default: '127.0.0.1',
    description:
      'Address to listen on. With an address other than loopback, datasources may reach public addresses only (see TROUPE_EGRESS_ALLOW).',
  }),
  port: setting({
    env: 'TROUPE_PORT',
    kind: integer(0, 65_535),
    default: '8787',
    description: 'Port to listen on. With 0 the system chooses a free port, which is printed.',
  }),
  listenSocket: optional({
    env: 'TROUPE_LISTEN_SOCKET',
    kind: socketPath,
    description:
      'Unix socket on which the server listens for a proxy on this machine, in addition to its port. The server believes the X-Forwarded-For header of requests on this socket. Only root and the group TROUPE_LISTEN_SOCKET_GROUP can connect; the user of the server cannot. Linux only.',
  }),
  listenSocketGroup: optional({
    env: 'TROUPE_LISTEN_SOCKET_GROUP',
    kind: pattern(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/, 'the name or the number of a group'),
    description:
      'Group of the proxy, whose members can connect to TROUPE_LISTEN_SOCKET. The user of the server must be a member, too. Unset: the group of the server.',
  }),
  publicUrl: optional({
    env: 'TROUPE_PUBLIC_URL',
    kind: httpUrl,
    description:
      'URL at which browsers reach this server. The addresses of notebooks (`url`) and the links in exported pages begin with this URL. Only pages under this URL may change datasources and keys. Unset: the address of each request, with the scheme of `X-Forwarded-Proto` if a proxy sends that header.',
  }),
  corsOrigins: setting({
    env: 'TROUPE_CORS_ORIGINS',
    kind: origins,
    default: 'none',
    description:
      'Other origins whose pages may use the API from a browser (CORS). Requests from these pages need an access token, too. Only pages of this server can change or test datasources, or set API keys of models and secrets of notebooks.',
  }),
  pageHosts: setting({
    env: 'TROUPE_PAGE_HOSTS',
    kind: pageHosts,
    default: 'none',
    description:
      'Other hosts from which the pages of notebooks may load pictures, media, fonts, frames and data, never scripts. A script in an output can send everything that the notebook shows to such a host. Plain http is allowed for this machine only.',
  }),
  workers: setting({
    env: 'TROUPE_WORKERS',
    kind: workers,
    default: 'auto',
    description:
      'Number of worker processes; notebooks and conversations are divided among them. `auto` means one worker for every two processors, at most 8, because kernels need the rest. With up to three processors, or outside of Linux, `auto` means one process.',
  }),
  uwebsockets: optional({
    env: 'TROUPE_UWEBSOCKETS',
    kind: path,
    description:
      'Another copy of uWebSockets.js, such as one of its own releases: its folder, or its `.node` file. If it cannot be loaded, the server does not start. Unset: the copy of this installation.',
  }),
  dataDir: setting({
    env: 'TROUPE_DATA_DIR',
    kind: path,
    default: '.troupe',
    description: 'Directory for everything the server stores. Only one server at a time can use it.',
  }),
  newStore: setting({
    env: 'TROUPE_NEW_STORE',
    kind: boolean,
    default: 'false',
    description:
      'Whether to create an empty store where credentials (bootstrap.json) or a keyring of an earlier store are found. With false, the server then refuses to start, because the volume with the earlier store may not be mounted. Set this to true for one start only.',
  }),
  readOnly: setting({
    env: 'TROUPE_READ_ONLY',
    kind: boolean,
    default: 'false',
    description:
      'Whether the server only reads, for a look into a restored backup or a store on a full disk. Such a server starts no kernels of notebooks, and refuses changes with 503 `read_only`. It makes no backups and deletes no old records. Nobody can sign in with a browser; access tokens work.',
  }),
  diskReserveMb: setting({
    env: 'TROUPE_DISK_RESERVE_MB',
    kind: integer(0, 1_048_576),
    default: '64',
    unit: 'MiB',
    description:
      'Disk space that is set aside for the store, at most half of the disk. When the disk is full, new work is refused, and this space is used for the ends of runs, cancellations and deletions.',
  }),
  diskWarnMb: setting({
    env: 'TROUPE_DISK_WARN_MB',
    kind: integer(0, 1_048_576),
    default: '1024',
    unit: 'MiB',
    description: 'Free disk space below which the log, `readyz` and `troupe doctor` warn.',
  }),
  backupDir: optional({
    env: 'TROUPE_BACKUP_DIR',
    kind: path,
    description:
      'Directory in which the server makes backups, preferably on another disk. These backups do not contain the keyring. Unset: the server makes no backups.',
  }),
  backupEveryH: setting({
    env: 'TROUPE_BACKUP_EVERY_H',
    kind: integer(1, 8760),
    default: '24',
    unit: 'h',
    description: 'Hours between two backups in TROUPE_BACKUP_DIR.',
  }),
  backupIncrementMin: setting({
    env: 'TROUPE_BACKUP_INCREMENT_MIN',
    kind: integer(0, 1440),
    default: '5',
    unit: 'min',
    description:
      'Minutes between two increments. An increment adds the latest changes to the last backup in TROUPE_BACKUP_DIR. When the increments together are larger than the backup, the server makes another backup early. 0: no increments.',
  }),
  backupKeep: setting({
    env: 'TROUPE_BACKUP_KEEP',
    kind: integer(1, 10_000),
    default: '7',
    description:
      'How many backups in TROUPE_BACKUP_DIR are kept, with their increments. Older backups are deleted; of those that were made early, one more is kept.',
  }),
  auditForward: optional({
    env: 'TROUPE_AUDIT_FORWARD',
    kind: auditTarget,
    description:
      'Receiver of the audit entries of all workspaces: a file of JSON lines, or a syslog receiver (RFC 5424). Unset: the entries are not forwarded.',
  }),
  drainS: setting({
    env: 'TROUPE_DRAIN_S',
    kind: seconds(0, 3600),
    default: '0',
    unit: 's',
    description:
      'Time for which a stopping server still answers requests. During this time `readyz` returns 503, so that load balancers notice the stop before the port closes.',
  }),
  logLevel: setting({
    env: 'TROUPE_LOG_LEVEL',
    kind: choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    default: 'info',
    description: 'The least severe level that is logged. With `debug`, the log has a line for each request.',
  }),
  slowRequestMs: setting({
    env: 'TROUPE_SLOW_REQUEST_MS',
    kind: integer(0, 3_600_000),
    default: '1000',
    unit: 'ms',
    description:
      'Time after which a request counts as slow: a warning in the log names it. Event streams and code calls never count as slow. 0: no request does.',
  }),
  otlpUrl: optional({
    env: 'TROUPE_OTLP_URL',
    kind: httpUrl,
    description:
      'URL of an OTLP receiver for traces, over HTTP and without `/v1/traces`, such as http://127.0.0.1:4318. Unset: nothing is traced.',
  }),
  traceSamplePercent: setting({
    env: 'TROUPE_TRACE_SAMPLE_PERCENT',
    kind: integer(0, 100),
    default: '1',
    unit: '%',
    description:
      'Share of requests for which the server begins a trace. If a request has a `traceparent` header, that header decides instead.',
  }),
  trustedProxies: setting({
    env: 'TROUPE_TRUSTED_PROXIES',
    kind: addresses,
    default: 'none',
    description:
      'Addresses of proxies in front of the server. Their X-Forwarded-For header names the client in the audit, the log and the count of wrong access tokens. While notebook code has the network of this machine (TROUPE_KERNEL_NETWORK=host), the addresses of this machine are never trusted, because notebook code connects from them, too. A proxy on this machine then needs TROUPE_LISTEN_SOCKET.',
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
      'Loopback and private addresses that datasources and hooks may reach; other loopback and private addresses are refused. Unset: they may reach all if the server listens on loopback only, otherwise none.',
  }),
  maxFileMb: setting({
    env: 'TROUPE_MAX_FILE_MB',
    kind: integer(1, 1_048_576),
    default: '1024',
    unit: 'MiB',
    description: 'The largest file that requests may store in a workspace. Notebooks may write larger files.',
  }),
  maxConnections: setting({
    env: 'TROUPE_MAX_CONNECTIONS',
    kind: integer(0, 1_000_000),
    default: '0',
    description:
      'Most open connections of clients, on all ports together; further connections are closed. Several workers have equal shares. 0: three quarters of the open files that each process may have.',
  }),
  warmUp: setting({
    env: 'TROUPE_WARM_UP',
    kind: boolean,
    default: 'true',
    description:
      'Whether the server carries out some runs of its own in the first idle seconds after its start. These runs compile its code before the first users come, and leave nothing behind. They take about a second of processor time and 20 MiB of memory in each worker. Set this to false where servers are started often for little work.',
  }),
} as const;
