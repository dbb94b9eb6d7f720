/** Starts the server in its own process, for tests that kill it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Client, createClient } from '#src/client/client.ts';
import { watchAnswers } from './answer-watch.ts';
import {
  type LogLine,
  type Overrides,
  OWNER,
  type Owner,
  pythonOfTests,
  SETTINGS,
} from './server-fixture.ts';

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url));

/** The running process. */
export interface ChildServer {
  readonly pid: number;
  readonly baseUrl: string;
  readonly dataDir: string;
  readonly client: Client;
  /** The log so far. */
  readonly log: readonly LogLine[];
  /** Sends the signal. Resolves with how the process ended. */
  end(signal: NodeJS.Signals): Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** Starts a new process on the same data. */
  again(): Promise<ChildServer>;
}

/** Resolves when the server is ready. It is killed, and its data removed, when the owner ends. */
export async function startChildServer(owner: Owner, overrides: Overrides = {}): Promise<ChildServer> {
  const dataDir = mkdtempSync(join(tmpdir(), 'troupe-child-'));
  owner.after(async () => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  return startOn(dataDir, owner, overrides);
}

async function startOn(dataDir: string, owner: Owner, overrides: Overrides): Promise<ChildServer> {
  const { PATH = '', HOME = '' } = process.env;
  const env = { PATH, HOME, ...SETTINGS, ...pythonOfTests(), TROUPE_DATA_DIR: dataDir, ...overrides };
  const child = spawn(process.execPath, [MAIN], { cwd: dataDir, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  owner.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const log: LogLine[] = [];
  const baseUrl = await readyUrl(child, log);
  const { fetch } = await watchAnswers(baseUrl);
  return {
    pid: child.pid!,
    baseUrl,
    dataDir,
    log,
    client: createClient({ baseUrl, accessToken: OWNER.token, workspaceId: OWNER.workspaceId, fetch }),
    async end(signal) {
      child.kill(signal);
      const [code, by] = await ended;
      return { code, signal: by };
    },
    again: () => startOn(dataDir, owner, overrides),
  };
}

/** Returns the URL from the log line `ready`. Rejects with the output when the process ends first. */
function readyUrl(child: ChildProcess, log: LogLine[]): Promise<string> {
  const printed: string[] = [];
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
