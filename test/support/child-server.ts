/** Starts the server in its own process: for tests that kill it, and for those of several workers. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Client, createClient } from '#src/contract/client/client.ts';
import { watchAnswers } from './answer-watch.ts';
import { bounded } from './processes.ts';
import { removeAfter } from './remove-folder.ts';
import {
  type LogLine,
  type Overrides,
  OWNER,
  type Owner,
  pythonOfTests,
  SETTINGS,
} from './server-fixture.ts';

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url));

/** A server in a process of its own. */
export interface ServerProcess {
  readonly pid: number;
  readonly baseUrl: string;
  /** The log so far. */
  readonly log: readonly LogLine[];
  /** Sends the signal. Resolves with how the process ended. */
  end(signal: NodeJS.Signals): Promise<{ readonly code: number | null; readonly signal: string | null }>;
}

/** Resolves when the server is ready. `command` is the script and its arguments. The caller ends the server. */
export async function startServerProcess(
  dataDir: string,
  settings: Overrides,
  command: readonly string[] = [MAIN],
): Promise<ServerProcess> {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, TROUPE_DATA_DIR: dataDir, ...settings };
  const child = spawn(process.execPath, [...command], {
    cwd: dataDir,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  const log: LogLine[] = [];
  const printed: string[] = [];
  const output = () => printed.join('\n');
  const baseUrl = await bounded('the server is ready', readyUrl(child, log, printed), output);
  return {
    pid: child.pid!,
    baseUrl,
    log,
    async end(signal) {
      child.kill(signal);
      const [code, by] = await bounded('the server and its children have ended', ended, output);
      return { code, signal: by };
    },
  };
}

/** Such a server with a client of its own, for tests that kill it. */
export interface ChildServer extends ServerProcess {
  readonly dataDir: string;
  readonly client: Client;
  /** Starts a new process on the same data. */
  again(): Promise<ChildServer>;
}

/** Resolves when the server is ready. It is killed, and its data removed, when the owner ends. */
export async function startChildServer(owner: Owner, overrides: Overrides = {}): Promise<ChildServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'troupe-child-'));
  removeAfter(owner, dataDir);
  return startOn(dataDir, owner, overrides);
}

async function startOn(dataDir: string, owner: Owner, overrides: Overrides): Promise<ChildServer> {
  // Tests that kill a server join nodes themselves.
  const settings = { ...SETTINGS, TROUPE_KERNEL_NODES: 'none', ...pythonOfTests(), ...overrides };
  const server = await startServerProcess(dataDir, settings);
  owner.after(async () => void (await server.end('SIGKILL')));
  const { fetch } = await watchAnswers(server.baseUrl);
  const { token: accessToken, workspaceId } = OWNER;
  return {
    ...server,
    dataDir,
    client: createClient({ baseUrl: server.baseUrl, accessToken, workspaceId, fetch }),
    again: () => startOn(dataDir, owner, overrides),
  };
}

/** Returns the URL from the log line `ready`. Rejects with the output when the process ends first. */
function readyUrl(child: ChildProcess, log: LogLine[], printed: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    createInterface({ input: child.stdout! }).on('line', (line) => {
      printed.push(line);
      const entry = JSON.parse(line) as LogLine;
      log.push(entry);
      const { msg, url } = entry;
      if (msg === 'ready' && typeof url === 'string') resolve(url);
    });
    createInterface({ input: child.stderr! }).on('line', (line) => printed.push(line));
    child.once('exit', () => reject(new Error(`the server ended:\n${printed.join('\n')}`)));
  });
}
