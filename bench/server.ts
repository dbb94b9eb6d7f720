/** A server as a process of its own, as an operator would run it, in a directory that goes with it. */
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

export interface ServerSettings {
  /** A prepared data directory; a new one when absent. It is not removed. */
  readonly dataDir?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** False: do not wait until it has come to rest. */
  readonly settle?: boolean;
}

export interface LaunchedServer {
  readonly pid: number;
  readonly api: Api;
  /** From the start of the process: until it answered, until it said that it is ready. */
  readonly firstAnswerMs: number;
  readonly readyMs: number;
  /** Resolves once it and what it started do nothing any more. */
  settled(): Promise<void>;
  /** Drains it; kills it when that takes too long. Idempotent. */
  end(): Promise<void>;
}

const TOKEN = 'token-of-the-benchmark';
const START_LIMIT_MS = 30_000;
const SETTLE_LIMIT_MS = 30_000;
const END_LIMIT_MS = 6_000;

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
  // Warnings are for whoever watches; the greeting only for the case that nothing follows it.
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
    return { pid, api, firstAnswerMs, readyMs, end, settled: () => settle(pid) };
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
    const patience = setTimeout(() => child.kill('SIGKILL'), END_LIMIT_MS);
    await exited;
    clearTimeout(patience);
    process.off('exit', kill);
    if (ownDir !== undefined) rmSync(ownDir, { recursive: true, force: true, maxRetries: 5 });
  };
  return () => {
    over ??= end();
    return over;
  };
}

/** When the path was first answered with 200. A connection each time: the first ones are refused. */
async function answeredAt(port: number, path: string, child: ChildProcess): Promise<number> {
  const deadline = performance.now() + START_LIMIT_MS;
  while (performance.now() < deadline && child.exitCode === null) {
    if (await isAnswered(port, path)) return performance.now();
    await sleep(1);
  }
  throw new Error(`The server did not answer ${path} within ${START_LIMIT_MS} ms.`);
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

async function settle(pid: number): Promise<void> {
  const deadline = performance.now() + SETTLE_LIMIT_MS;
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
