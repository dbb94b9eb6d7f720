/**
 * The whole server, on a free port and with a new data directory. It runs in this process or, with
 * TROUPE_TEST_WORKERS, as that many workers below a separate process. Every response that passes
 * through the fixture is checked against the OpenAPI document. A logged error fails the test during
 * which it was logged.
 */
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadConfig } from '#src/base/config/config.ts';
import { openLog } from '#src/base/log/log.ts';
import { type Client, createClient } from '#src/contract/client/client.ts';
import { openPrerequisites } from '#src/start/app/prerequisites.ts';
import { createApp } from '#src/start/app.ts';
import { type AnswerWatch, watchAnswers } from './answer-watch.ts';
import { startServerProcess } from './child-server.ts';
import { hostOfLane } from './lane-hosts.ts';
import { type Caller, type RawAnswer, type RawRequest, sendRaw } from './raw-request.ts';
import { removeAfter } from './remove-folder.ts';

/** A test context, or `node:test` itself for a server that all tests of a file share. */
export interface Owner {
  after(cleanUp: () => Promise<void>): void;
}

/** The running server, and ways to call it. */
export interface TestServer {
  /** The pid of the process that has the kernels: the process of the test, or the server's own process. */
  readonly pid: number;
  readonly baseUrl: string;
  readonly dataDir: string;
  /** The working directory of the kernels in the owner's workspace. */
  readonly filesDir: string;
  readonly owner: Caller;
  /** Calls the server as the owner. */
  readonly client: Client;
  clientOf(caller: Caller): Client;
  /** Returns a caller with all rights in another workspace and none in the owner's. */
  stranger(): Promise<Caller>;
  /** Sends one request unchanged, as the owner unless its headers say otherwise. */
  request(method: string, path: string, request?: RawRequest): Promise<RawAnswer>;
  /** The log so far, parsed. */
  readonly log: readonly LogLine[];
  /** Stops the server and starts it again on the same data, with another port, and with these settings besides its own. */
  restart(changed?: Overrides): Promise<TestServer>;
}

/** One line of the log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** The owner of the test workspace. */
export const OWNER: Caller = { token: 'token-of-the-owner', workspaceId: 'ws_home' };

/** Settings that differ from `SETTINGS`. */
export type Overrides = Readonly<Record<string, string>>;

/** Whether the kernels of tests run on a node: another process of this machine, connected by TLS. */
export const ON_NODES = process.env.TROUPE_TEST_NODES === '1';

/** The settings of a server whose kernels run on nodes of this machine. */
export const NODES: Overrides = {
  TROUPE_KERNEL_NODES: 'join',
  TROUPE_NODES_HOST: '127.0.0.1',
  TROUPE_NODES_PORT: '0',
};

/** The settings of a test server. */
export const SETTINGS: Overrides = {
  TROUPE_HOST: '127.0.0.1',
  TROUPE_PORT: '0',
  TROUPE_PRELOAD: 'false',
  TROUPE_WARM_UP: 'false',
  TROUPE_PACKAGES: 'false',
  TROUPE_HEARTBEAT_S: '0.5',
  TROUPE_BOOTSTRAP_TOKEN: OWNER.token,
  TROUPE_BOOTSTRAP_WORKSPACE: OWNER.workspaceId,
  TROUPE_WORKERS: process.env.TROUPE_TEST_WORKERS ?? '1',
  ...(ON_NODES && NODES),
};

/** Whether the servers of tests have several workers. */
export const HAS_WORKERS = SETTINGS.TROUPE_WORKERS !== '1';

/** Starts a server. Resolves when kernels can be started. The server stops, and its data is removed, when the owner ends. */
export async function startServer(owner: Owner, overrides: Overrides = {}): Promise<TestServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'troupe-test-'));
  removeAfter(owner, dataDir);
  return startOn(dataDir, owner, overrides);
}

async function startOn(dataDir: string, owner: Owner, overrides: Overrides): Promise<TestServer> {
  const settings = { ...SETTINGS, ...pythonOfTests(), ...overrides };
  const start = settings.TROUPE_WORKERS === '1' ? startHere : startApart;
  const server = await start(dataDir, owner, settings);
  let watch: AnswerWatch | undefined;
  const stop = once(async () => {
    watch?.end();
    const problems = await server.stop();
    const loud = server.log.filter(({ level }) => level === 'error' || level === 'fatal');
    const complaints = [
      ...problems,
      ...loud.map((line) => JSON.stringify(line)),
      ...(watch?.complaints ?? []),
    ];
    assert.deepEqual(complaints, []);
  });
  owner.after(stop);
  const { baseUrl, pid } = server;
  watch = await watchAnswers(baseUrl);
  const clientOf = ({ token, workspaceId }: Caller) =>
    createClient({ baseUrl, accessToken: token, workspaceId, fetch: watch.fetch });
  const client = clientOf(OWNER);
  if (settings.TROUPE_KERNEL_NODES === 'join' && ON_NODES) await joinOwnNode(owner, client, settings);
  return {
    pid,
    baseUrl,
    dataDir,
    filesDir: join(dataDir, 'workspaces', OWNER.workspaceId, 'files'),
    owner: OWNER,
    client,
    clientOf,
    stranger: () => makeStranger(client, clientOf),
    async request(method, path, request = {}) {
      const answer = await sendRaw(baseUrl, method, path, OWNER, request);
      watch.check({ method, path, ...answer });
      return answer;
    },
    log: server.log,
    async restart(changed = {}) {
      await stop();
      return startOn(dataDir, owner, { ...overrides, ...changed });
    },
  };
}

/** Joins a node with the settings for kernels that the server has. */
async function joinOwnNode(owner: Owner, client: Client, settings: Overrides): Promise<void> {
  const { joinNode } = await import('./kernel-node.ts'); // which imports this file
  const ofKernels = Object.entries(settings).filter(([name]) => /^TROUPE_(KERNEL_|PRELOAD)/.test(name));
  const network = settings.TROUPE_KERNEL_NETWORK ?? 'host';
  await joinNode(owner, { client }, 'node', {
    ...Object.fromEntries(ofKernels),
    TROUPE_KERNEL_NODES: 'none',
    TROUPE_NODE_KERNEL_NETWORK: network,
  });
}

interface Running {
  readonly pid: number;
  readonly baseUrl: string;
  readonly log: readonly LogLine[];
  /** Resolves with the errors. */
  stop(): Promise<readonly string[]>;
}

async function startHere(dataDir: string, owner: Owner, settings: Overrides): Promise<Running> {
  const { config } = loadConfig({ ...settings, TROUPE_DATA_DIR: dataDir }, { cwd: dataDir });
  const lines: LogLine[] = [];
  const log = openLog({
    level: 'debug',
    destination: { write: (line) => lines.push(JSON.parse(line) as LogLine) },
  });
  const fatal: Error[] = [];
  const prerequisites = await openPrerequisites(config, log, undefined, hostOfLane());
  const app = await createApp({ config, log, prerequisites, onFatal: (error) => fatal.push(error) });
  const stop = once(async () => app[Symbol.asyncDispose]());
  owner.after(stop);
  await app.kernelsReady;
  return {
    pid: process.pid,
    baseUrl: app.url,
    log: lines,
    async stop() {
      await stop();
      return fatal.map(String);
    },
  };
}

async function startApart(dataDir: string, _owner: Owner, settings: Overrides): Promise<Running> {
  const server = await startServerProcess(dataDir, { TROUPE_LOG_LEVEL: 'debug', ...settings });
  return {
    pid: server.pid,
    baseUrl: server.baseUrl,
    log: server.log,
    async stop() {
      const { code, signal } = await server.end('SIGTERM');
      return code === 0 ? [] : [`the server ended with ${code ?? signal}`];
    },
  };
}

async function makeStranger(owner: Client, clientOf: (caller: Caller) => Client): Promise<Caller> {
  const { id: workspaceId } = await owner.workspaces.create({ name: 'Elsewhere' });
  const theirs = clientOf({ token: OWNER.token, workspaceId });
  await theirs.members.create({ userId: 'stranger', role: 'owner' });
  const { token } = await theirs.accessTokens.create({
    name: 'theirs',
    userId: 'stranger',
    scopes: ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'],
  });
  return { token, workspaceId };
}

/** Returns the setting for the interpreter that `npm test` uses, if one is set. */
export function pythonOfTests(): Overrides {
  const python = process.env.TROUPE_PYTHON;
  return python === undefined || python === '' ? {} : { TROUPE_PYTHON: python };
}

function once(action: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= action();
    return done;
  };
}
