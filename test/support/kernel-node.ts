/** Starts kernel nodes in processes of their own, on this machine. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type ChildServer, startChildServer } from './child-server.ts';
import { bounded, eventually } from './processes.ts';
import { removeAfter } from './remove-folder.ts';
import { type LogLine, NODES, type Overrides, type Owner, pythonOfTests } from './server-fixture.ts';

const PROGRAM = fileURLToPath(new URL('../../src/start/node-main.js', import.meta.url));
/** A node needs no libraries for most tests, and is up sooner without them. */
const NODE_SETTINGS: Overrides = { TROUPE_PRELOAD: 'false' };

export interface NodeOptions {
  readonly invitation?: string;
  /** The file of the secret, with which `invitation` is an address. */
  readonly secretFile?: string;
  readonly name?: string;
  /** Ends when its server is lost. */
  readonly once?: boolean;
  readonly settings?: Overrides;
  /** The folder of an earlier start. */
  readonly folder?: string;
  /** The program and arguments that run the node, as on another machine. */
  readonly command?: readonly string[];
  /** The user that runs it, to whom the folder belongs. */
  readonly uid?: number;
}

/** A node in a process of its own. */
export interface NodeProcess {
  readonly pid: number;
  readonly folder: string;
  /** The log so far. */
  readonly log: readonly LogLine[];
  /** The lines for people so far. */
  readonly said: readonly string[];
  /** Resolves with the exit code, once the process has ended. */
  readonly ended: Promise<number | null>;
  /** Resolves once the node has joined, for the `times`-th time. */
  joined(times?: number): Promise<void>;
  end(signal: NodeJS.Signals): Promise<void>;
}

/** Starts a node. It is killed when the owner ends. */
export function startNode(owner: Owner, { folder = newFolder(owner), ...options }: NodeOptions): NodeProcess {
  const { PATH = '', HOME = '' } = process.env;
  const { invitation, secretFile, name, once: ends } = options;
  const given = JSON.stringify({ invitation, secretFile, name, once: ends });
  const script = `import(${JSON.stringify(PROGRAM)}).then(({ join }) => join(${given}))`;
  const [program = process.execPath, ...before] = [...(options.command ?? []), process.execPath];
  const child = spawn(program, [...before, '--conditions=development', '--input-type=module', '-e', script], {
    cwd: folder,
    env: { PATH, HOME, ...NODE_SETTINGS, ...pythonOfTests(), ...options.settings, TROUPE_NODE_DIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
  });
  const log: LogLine[] = [];
  const said: string[] = [];
  createInterface({ input: child.stdout! }).on('line', (line) => log.push(JSON.parse(line) as LogLine));
  createInterface({ input: child.stderr! }).on('line', (line) => said.push(line));
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const output = () => [...said, ...log.map((line) => JSON.stringify(line))].join('\n');
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    if (signal === 'SIGKILL') child.kill('SIGCONT');
    await bounded('the node has ended', ended, output);
  };
  owner.after(() => end('SIGKILL'));
  return {
    pid: child.pid!,
    folder,
    log,
    said,
    ended,
    joined: (times = 1) =>
      bounded(
        'the node has joined',
        eventually('the node has joined', () => {
          if (child.exitCode !== null) throw new Error('the node has ended');
          return log.filter(({ msg }) => msg === 'this node has joined the server').length >= times;
        }).then(() => undefined),
        output,
      ),
    end,
  };
}

function newFolder(owner: Owner): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-node-'));
  removeAfter(owner, folder);
  return folder;
}

/** A server whose kernels run on nodes. */
export async function startServerOfNodes(owner: Owner, overrides: Overrides = {}): Promise<ChildServer> {
  return startChildServer(owner, { ...NODES, ...overrides });
}

/** Returns an invitation with this address of the server. */
export async function invite({ client }: Pick<ChildServer, 'client'>, host = '127.0.0.1'): Promise<string> {
  const { code, port } = await client.nodes.invite();
  return `${host}:${port}#${code}`;
}

/** Starts a node and waits until it has joined. */
export async function joinNode(
  owner: Owner,
  server: Pick<ChildServer, 'client'>,
  name: string,
  settings: Overrides = {},
): Promise<NodeProcess> {
  const node = startNode(owner, { invitation: await invite(server), name, settings });
  await node.joined();
  return node;
}
