/** Starts a server as an operator would: in its own process, with a data directory that is removed afterwards. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Api } from './api.ts';
import { freePort, startChildServer } from './child-server.ts';
import { cpuMs, processTree } from './processes.ts';
import { TOKEN, WORKSPACE } from './seed.ts';
import { temporaryFolder } from './temporary-folder.ts';

/** The options for starting the server. */
export interface ServerSettings {
  /** A prepared data directory, which is not removed. When absent, a new one is made. */
  readonly dataDir?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether to wait until the server is idle; true when absent. */
  readonly waitUntilIdle?: boolean;
  /** Further options of Node.js. */
  readonly nodeOptions?: readonly string[];
}

/** The running server. */
export interface LaunchedServer {
  readonly pid: number;
  readonly api: Api;
  /** Milliseconds from the start of the process to the first response, and to readiness. */
  readonly firstAnswerMs: number;
  readonly readyMs: number;
  /** Resolves when the server and its children use no processor time any more. */
  untilIdle(): Promise<void>;
  /** Drains the server, and kills it when that takes too long. Idempotent. */
  end(): Promise<void>;
}

const MAX_IDLE_WAIT_MS = 30_000;

/** Starts a server. Rejects with its output when it does not become ready. */
export async function launchServer(
  settings: ServerSettings & { readonly main: string },
): Promise<LaunchedServer> {
  const folder = settings.dataDir === undefined ? temporaryFolder('data') : { path: settings.dataDir };
  const dataDir = folder.path;
  const port = await freePort();
  const { PATH = '', HOME = '', TROUPE_PYTHON, BENCH_NODE_OPTIONS } = process.env;
  const nodeOptions = [...(BENCH_NODE_OPTIONS?.match(/\S+/g) ?? []), ...(settings.nodeOptions ?? [])];
  const child = startChildServer({
    program: process.execPath,
    args: [...nodeOptions, settings.main],
    cwd: dataDir,
    port,
    showsOutput: true, // warnings
    env: {
      PATH,
      HOME,
      NODE_ENV: 'production',
      ...(TROUPE_PYTHON === undefined ? {} : { TROUPE_PYTHON }),
      TROUPE_DATA_DIR: dataDir,
      TROUPE_PORT: String(port),
      TROUPE_LOG_LEVEL: 'warn',
      TROUPE_WORKERS: '1', // the same on every machine, unless a scenario has another value
      TROUPE_BOOTSTRAP_TOKEN: TOKEN,
      TROUPE_BOOTSTRAP_WORKSPACE: WORKSPACE,
      ...settings.environment,
    },
  });
  const { pid, startedAt } = child;
  const end = async () => {
    await child.end();
    if ('remove' in folder) folder.remove();
  };
  try {
    const firstAnswerMs = (await child.answeredAt('/healthz')) - startedAt;
    const readyMs = (await child.answeredAt('/readyz')) - startedAt;
    const api = new Api({ port, token: TOKEN, workspaceId: WORKSPACE });
    return { pid, api, firstAnswerMs, readyMs, end, untilIdle: () => waitUntilIdle(pid) };
  } catch (error) {
    await end();
    throw error;
  }
}

async function waitUntilIdle(pid: number): Promise<void> {
  const deadline = performance.now() + MAX_IDLE_WAIT_MS;
  let quiet = 0;
  for (let before = cpuMs(processTree(pid)); quiet < 3 && performance.now() < deadline; ) {
    await sleep(100);
    const now = cpuMs(processTree(pid));
    quiet = now - before < 2 ? quiet + 1 : 0;
    before = now;
  }
}
