/** Starts a server as an operator would: in its own process, with a data directory that is removed afterwards. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Api } from './api.ts';
import { cpuMs, processTree } from './processes.ts';
import { WORKSPACE } from './seed.ts';

/** How the server is started. */
export interface ServerSettings {
  /** A prepared data directory, which is not removed. When absent, a new one is made. */
  readonly dataDir?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether to wait until the server is idle; true when absent. */
  readonly waitUntilIdle?: boolean;
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

const TOKEN = 'token-of-the-benchmark';
const MAX_START_MS = 30_000;
const MAX_IDLE_WAIT_MS = 30_000;
const MAX_END_MS = 6_000;

/** Starts a server. Rejects with its output when it does not become ready. */
export async function launchServer(
  settings: ServerSettings & { readonly main: string },
): Promise<LaunchedServer> {
  const dataDir = settings.dataDir ?? mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const port = await freePort();
  const { PATH = '', HOME = '', TROUPE_PYTHON } = process.env;
  const startedAt = performance.now();
  const child = spawn(
    process.execPath,
    [...(process.env.BENCH_NODE_OPTIONS?.split(' ') ?? []), '--enable-source-maps', settings.main],
    {
      cwd: dataDir,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH,
        HOME,
        NODE_ENV: 'production',
        ...(TROUPE_PYTHON === undefined ? {} : { TROUPE_PYTHON }),
        TROUPE_DATA_DIR: dataDir,
        TROUPE_PORT: String(port),
        TROUPE_LOG_LEVEL: 'warn',
        TROUPE_BOOTSTRAP_TOKEN: TOKEN,
        TROUPE_BOOTSTRAP_WORKSPACE: WORKSPACE,
        ...settings.environment,
      },
    },
  );
  const pid = child.pid!;
  // Warnings are shown. The greeting is shown only when the start fails.
  child.stdout?.pipe(process.stderr, { end: false });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString('utf8');
  });
  const end = ending(child, settings.dataDir === undefined ? dataDir : undefined);
  try {
    const firstAnswerMs = (await answeredAt(port, '/healthz', child)) - startedAt;
    const readyMs = (await answeredAt(port, '/readyz', child)) - startedAt;
    const api = new Api({ port, token: TOKEN, workspaceId: WORKSPACE });
    return { pid, api, firstAnswerMs, readyMs, end, untilIdle: () => waitUntilIdle(pid) };
  } catch (error) {
    await end();
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${said}`);
  }
}

function ending(child: ChildProcess, ownDir: string | undefined): () => Promise<void> {
  const exited = once(child, 'exit');
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  let over: Promise<void> | undefined;
  const end = async () => {
    child.kill('SIGTERM');
    const killTimer = setTimeout(() => child.kill('SIGKILL'), MAX_END_MS);
    await exited;
    clearTimeout(killTimer);
    process.off('exit', kill);
    if (ownDir !== undefined) rmSync(ownDir, { recursive: true, force: true, maxRetries: 5 });
  };
  return () => {
    over ??= end();
    return over;
  };
}

/** Resolves with the time of the first 200. It opens a connection for each try, because the first ones are refused. */
async function answeredAt(port: number, path: string, child: ChildProcess): Promise<number> {
  const deadline = performance.now() + MAX_START_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    if (await isAnswered(port, path)) return performance.now();
    await sleep(1);
  }
  throw new Error(`The server did not answer ${path} within ${MAX_START_MS} ms.`);
}

function isAnswered(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`));
    socket.once('data', (chunk) => {
      resolve(chunk.includes(' 200 OK'));
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
  });
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

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('There is no free port.');
  return address.port;
}
