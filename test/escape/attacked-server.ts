/**
 * A server that notebook code attacks: a separate process, as this user or as an ordinary one. Its kernels are confined as far as
 * the machine allows, or as if some of the layers were missing. The fixture also makes the files that notebooks must not reach.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Client, createClient } from '#src/contract/client/client.ts';
import { invite, startNode } from '#test/support/kernel-node.ts';
import { bounded } from '#test/support/processes.ts';
import { removeAfter } from '#test/support/remove-folder.ts';
import { NODES, ON_NODES, type Overrides, type Owner } from '#test/support/server-fixture.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const MAIN = join(ROOT, 'dist/server/main.js');
const PYTHON = process.env.TROUPE_PYTHON || join(ROOT, '.venv/bin/python');
/**
 * The ordinary user. It is not 65534 (nobody): in a user namespace without id maps every id looks
 * like 65534, so a mistake with ids would not be visible.
 */
export const ORDINARY_UID = 20_170;

export type User = 'this user' | 'an ordinary user';

export interface AttackedServer {
  readonly pid: number;
  readonly baseUrl: string;
  /** A client of the workspace whose notebooks attack. */
  readonly client: Client;
  readonly dataDir: string;
  /** A folder outside of the data directory that notebooks may read. */
  readonly keyringFile: string;
  /** The process below which kernels run, which is the server or its node, and a file of it with a key. */
  readonly host: { readonly pid: number; readonly keyFile: string };
  readonly configFile: string;
  /** The unix socket on which the server listens for proxies, in a folder that notebooks may read. */
  readonly proxySocket: string;
  /** Another workspace, with its client and a file. */
  readonly neighbour: { readonly client: Client; readonly file: string };
  /** The line about confinement that the server logged at its start. */
  readonly confinement: string;
  /** The messages that it has logged so far. */
  readonly messages: readonly string[];
}

export interface AttackOptions {
  readonly user: User;
  /** Layers that the machine pretends to lack, by their names in the kernel host's test switch. */
  readonly without?: string;
  readonly settings?: Overrides;
  /**
   * Python code that the kernel host runs when it starts, as if one of its libraries were
   * malicious.
   */
  readonly rotten?: string;
  /** A program and its first arguments; it replaces itself by the command that follows them. */
  readonly launcher?: readonly string[];
}

/** Returns why the attacks cannot be tried here as this user; undefined when they can. */
export function obstacle(user: User): string | undefined {
  if (user === 'this user') return undefined;
  if (process.getuid?.() !== 0) return 'this user is an ordinary one';
  const asThem = { uid: ORDINARY_UID, gid: ORDINARY_UID, cwd: '/' };
  if (
    spawnSync(process.execPath, ['-e', `require('fs').readFileSync(${JSON.stringify(MAIN)})`], asThem)
      .status !== 0
  )
    return `${ROOT} is closed to other users`;
  const python = systemPython();
  return python === undefined ? 'there is no Python that other users can run' : undefined;
}

/** Resolves when kernels can be started. */
export async function startAttacked(owner: Owner, options: AttackOptions): Promise<AttackedServer> {
  const { user, without = '', settings = {}, rotten, launcher = [] } = options;
  const base = mkdtempSync('/var/tmp/troupe-escape-');
  removeAfter(owner, base);
  chmodSync(base, 0o755);
  const [dataDir, shared, cwd] = [join(base, 'data'), join(base, 'shared'), join(base, 'cwd')];
  for (const folder of [dataDir, shared, cwd]) mkdirSync(folder);
  chmodSync(cwd, 0o755); // with any umask, because the server ignores settings in a folder that others can write to
  const keyringFile = join(shared, 'keyring.json');
  const proxySocket = join(shared, 'proxies.sock');
  const configFile = join(cwd, 'troupe.config.json');
  writeFileSync(join(shared, 'for-all.txt'), 'for all');
  writeFileSync(configFile, JSON.stringify({ heartbeatS: 1, openaiApiKey: 'sk-secret' }), { mode: 0o600 });
  const python = pythonFor(user, base, without);
  if (rotten !== undefined) writeFileSync(join(base, 'bin/sitecustomize.py'), rotten);
  const isOther = user !== 'this user';
  if (isOther)
    for (const path of [dataDir, shared, cwd, configFile]) chownSync(path, ORDINARY_UID, ORDINARY_UID);

  const [program = '', ...args] = [...launcher, process.execPath, MAIN];
  const child = spawn(program, args, {
    cwd,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: isOther ? cwd : (process.env.HOME ?? ''),
      TROUPE_PORT: '0',
      TROUPE_WORKERS: '1',
      TROUPE_DATA_DIR: dataDir,
      TROUPE_KEYRING_FILE: keyringFile,
      TROUPE_LISTEN_SOCKET: proxySocket,
      TROUPE_KERNEL_READ_PATHS: shared,
      TROUPE_PRELOAD: 'false',
      TROUPE_WARM_UP: 'false',
      TROUPE_PYTHON: python,
      ...(ON_NODES && NODES),
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(isOther ? { uid: ORDINARY_UID, gid: ORDINARY_UID } : {}),
  });
  const ended = once(child, 'exit');
  owner.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const printed: string[] = [];
  const messages: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => printed.push(line));
  const ready = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      printed.push(line);
      const { msg, url } = JSON.parse(line) as { msg: string; url?: string };
      messages.push(msg);
      if (msg === 'ready' && url !== undefined) resolve(url);
    });
    void ended.then(() => reject(new Error(`the server ended: ${printed.join('\n')}`)));
  });
  const baseUrl = await bounded('the server is ready', ready, () => printed.join('\n'));
  const { accessToken, workspaceId } = JSON.parse(readFileSync(join(dataDir, 'bootstrap.json'), 'utf8')) as {
    accessToken: string;
    workspaceId: string;
  };
  const client = createClient({ baseUrl, accessToken, workspaceId });
  const { id: elsewhere } = await client.workspaces.create({ name: 'Elsewhere' });
  const neighbour = createClient({ baseUrl, accessToken, workspaceId: elsewhere });
  const node = ON_NODES
    ? await joinAttackedNode(owner, client, { base, python, isOther, shared, settings })
    : undefined;
  return {
    pid: child.pid!,
    host: node?.host ?? { pid: child.pid!, keyFile: keyringFile },
    baseUrl,
    client,
    dataDir,
    keyringFile,
    configFile,
    proxySocket,
    neighbour: { client: neighbour, file: join(dataDir, 'workspaces', elsewhere, 'files', 'theirs.txt') },
    confinement: node?.confinement ?? printed.find((line) => line.includes('kernels are confined')) ?? '',
    messages,
  };
}

interface AttackedNode {
  readonly base: string;
  readonly python: string;
  /** Whether an ordinary user runs the server. */
  readonly isOther: boolean;
  readonly shared: string;
  readonly settings: Overrides;
}

/**
 * Joins the node on which notebooks attack. The node reports the confinement of its kernels as the server
 * reports it for its own kernels.
 */
async function joinAttackedNode(
  owner: Owner,
  client: Client,
  { base, python, isOther, shared, settings }: AttackedNode,
): Promise<Pick<AttackedServer, 'host' | 'confinement'>> {
  const folder = join(base, 'node');
  mkdirSync(folder, { mode: 0o700 });
  if (isOther) chownSync(folder, ORDINARY_UID, ORDINARY_UID);
  const ofKernels = Object.entries(settings).filter(([name]) => /^TROUPE_(KERNEL_|PRELOAD)/.test(name));
  const node = startNode(owner, {
    folder,
    invitation: await invite({ client }),
    ...(isOther && { uid: ORDINARY_UID }),
    settings: {
      ...Object.fromEntries(ofKernels),
      HOME: isOther ? folder : (process.env.HOME ?? ''),
      TROUPE_KERNEL_NODES: 'none',
      TROUPE_KERNEL_READ_PATHS: shared,
      TROUPE_NODE_KERNEL_NETWORK: settings.TROUPE_KERNEL_NETWORK ?? 'host',
      TROUPE_PYTHON: python,
    },
  });
  await node.joined();
  const { items } = await client.nodes.list();
  return {
    host: { pid: node.pid, keyFile: join(folder, 'membership.json') },
    confinement: `kernels are confined ${items[0]?.confinement}`,
  };
}

/** A program that runs Python as that user, and pretends that the machine lacks those layers. */
function pythonFor(user: User, base: string, without: string): string {
  const python = user === 'this user' ? PYTHON : borrowEnvironment(join(base, 'venv'));
  const wrapper = join(base, 'bin', 'python');
  mkdirSync(dirname(wrapper));
  const environment = `TROUPE_CONFINE_WITHOUT='${without}' PYTHONPATH='${dirname(wrapper)}'`;
  writeFileSync(wrapper, `#!/bin/sh\n${environment} exec '${python}' "$@"\n`, { mode: 0o755 });
  chmodSync(wrapper, 0o755);
  // Installers see the environment of the kernels, and not our own.
  const uv = join(ROOT, '.venv/bin/uv');
  const seen = user === 'this user' ? uv : join(base, 'venv/bin/uv');
  if (seen !== uv) copyFileSync(uv, seen, constants.COPYFILE_FICLONE);
  symlinkSync(seen, join(dirname(wrapper), 'uv'));
  return wrapper;
}

/**
 * The packages of our environment under a Python that every user can run, because our own may be in
 * a home directory.
 */
function borrowEnvironment(folder: string): string {
  const python = systemPython();
  if (python === undefined) throw new Error(obstacle('an ordinary user'));
  spawnSync(python, ['-m', 'venv', '--without-pip', folder]);
  const site = 'import sysconfig; print(sysconfig.get_path("purelib"))';
  const [ours, theirs] = [PYTHON, join(folder, 'bin/python')].map((program) =>
    spawnSync(program, ['-c', site], { encoding: 'utf8' }).stdout.trim(),
  );
  writeFileSync(join(theirs!, 'ours.pth'), `${ours}\n`);
  return join(folder, 'bin/python');
}

/** The Python has the same version as ours, so that it can load the same packages. */
function systemPython(): string | undefined {
  const version = 'import sys; print("%d.%d" % sys.version_info[:2])';
  const { stdout } = spawnSync(PYTHON, ['-c', version], { encoding: 'utf8' });
  const program = `/usr/bin/python${stdout.trim()}`;
  return existsSync(program) ? program : undefined;
}
