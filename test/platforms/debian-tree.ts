/** A Debian tree in a directory, and programs that run in it: as an ordinary user, with the network and the processes of this machine. */
import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** The user of the tree, who is not in any list of users. */
export const USER = 4711;
/** The folder of the tree in which programs of that user keep their downloads. */
export const DOWNLOADS = '/var/cache/platforms';
const RELEASE = 'trixie';
const PACKAGES = ['ca-certificates', 'curl', 'python3', 'python3-venv'];
/** The variables of this machine that describe how to reach the network and the registries. */
const NETWORK =
  /^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|PIP_CERT|PIP_INDEX_URL|REQUESTS_CA_BUNDLE|SSL_CERT_FILE|npm_config_registry)$/i;
/** The files of this machine that are needed for the network. */
const NETWORK_FILES = ['etc/resolv.conf', 'etc/hosts', 'etc/ssl/certs/ca-certificates.crt'];

/**
 * Makes the tree the root directory, with the devices and the processes of this machine, and then
 * becomes the program, which keeps the process id. A user in a `chroot` could not make namespaces,
 * which the confinement of kernels needs, so this is a new root instead.
 */
const ENTER = `set -eu
tree=$1 user=$2 folder=$3; shift 3
mount --rbind "$tree" "$tree"
for place in dev proc; do mount --rbind /$place "$tree/$place"; done
mount -t tmpfs tmpfs "$tree/run"
mkdir "$tree/run/before"
cd "$tree"
pivot_root . run/before
umount -l /run/before
cd "$folder"
exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs -- "$@"`;

/** Thrown when this machine cannot make or enter a tree; the message gives the reason. */
export class TreeUnavailable extends Error {}

export class DebianTree {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Makes a tree in `folder`, unless one is there already, and checks that programs in it reach the registries. Downloaded packages
   * of Debian are kept next to it. Rejects with `TreeUnavailable`, and leaves no part of a tree.
   */
  static async make(folder: string, options: TreeOptions = {}): Promise<DebianTree> {
    if (!existsSync(folder)) await makeWhole(folder, (unfinished) => debootstrap(unfinished, options));
    for (const file of NETWORK_FILES)
      if (existsSync(`/${file}`)) copyFileSync(`/${file}`, join(folder, file));
    const tree = new DebianTree(folder);
    await Promise.all(registries().map((address) => tree.#reach(address)));
    return tree;
  }

  /** Rejects with `TreeUnavailable` when a program in the tree cannot reach the address. */
  async #reach(address: string): Promise<void> {
    const ask = ['curl', '--silent', '--show-error', '--fail', '--location', '--max-time', '20'] as const;
    try {
      await this.run([...ask, '--output', '/dev/null', address], IN_ROOT);
    } catch (error) {
      // The first line of the message is the command, whose address may contain a password.
      const [, ...said] = String(Object(error).message).trim().split('\n');
      throw new TreeUnavailable(
        `a program in the Debian cannot reach ${new URL(address).host}: ${said.join(' ')}`,
      );
    }
  }

  /**
   * Returns the folder of the programs of Node.js and npm, as a path in the tree. They come from the registry, as for a user: the npm
   * of Debian is not in the tree. Rejects with `TreeUnavailable` when they cannot be downloaded within `limitS` seconds.
   */
  async withNode(version: string, limitS = 900): Promise<string> {
    const place = `/opt/node-${version}`;
    const folder = join(this.folder, place);
    const args = ['--no-audit', '--no-fund', `node@${version}`, 'npm@11'];
    if (!existsSync(folder))
      await makeWhole(folder, async (unfinished) => {
        try {
          await execute('npm', ['install', '--prefix', unfinished, ...args], { timeout: limitS * 1000 });
        } catch (error) {
          throw new TreeUnavailable(`Node.js ${version} cannot be downloaded: ${lastWords(error)}`);
        }
      });
    return `${place}/node_modules/.bin`;
  }

  /** Starts a program in a folder of the tree. The returned process is that program. */
  start(
    [command, ...args]: readonly [string, ...string[]],
    { folder, path, env = {}, user = USER }: Situation,
    options: SpawnOptions = {},
  ): ChildProcess {
    const entering = ['--mount', '--propagation', 'private', 'sh', '-c', ENTER, 'sh'];
    return spawn('unshare', [...entering, this.folder, String(user), folder, command, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...options,
      env: {
        ...networkVariables(),
        PATH: [...path, '/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin'].join(delimiter),
        HOME: folder,
        LANG: 'C.UTF-8',
        ...env,
      },
    });
  }

  /** Runs a program to its end and returns its output. Rejects with all its output when it fails. */
  async run(command: readonly [string, ...string[]], situation: Situation): Promise<string> {
    const child = this.start(command, situation);
    let stdout = '';
    let stderr = '';
    child.stdout?.on('data', (text: Buffer) => {
      stdout += text.toString();
    });
    child.stderr?.on('data', (text: Buffer) => {
      stderr += text.toString();
    });
    const [code] = await new Promise<[number | null]>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (status) => resolve([status]));
    });
    if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  }
}

/** Where and how a program runs in the tree. */
export interface Situation {
  /** The working directory and the home directory, as a path in the tree. */
  readonly folder: string;
  /** Folders of programs, as paths in the tree, before those of Debian. */
  readonly path: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The id of the user. Default: `USER`. */
  readonly user?: number;
}

export interface TreeOptions {
  /** Packages of Debian that the tree has in addition to those that every tree has. */
  readonly packages?: readonly string[];
  /** The folders of programs, as in `PATH`. */
  readonly path?: string;
  /** After this time debootstrap is stopped. */
  readonly limitS?: number;
}

/** Returns an address at each registry that the journeys use: of Python packages, and of npm. */
function registries(): readonly string[] {
  const { PIP_INDEX_URL: python = 'https://pypi.org/simple', npm_config_registry: npm } = process.env;
  const withoutSlash = (address: string) => address.replace(/\/+$/, '');
  return [`${withoutSlash(python)}/pip/`, `${withoutSlash(npm ?? 'https://registry.npmjs.org')}/npm/latest`];
}

const IN_ROOT: Situation = { folder: '/', path: [] };

/** Returns the folder in which trees are kept between runs: `TROUPE_TEST_CACHE`, or `troupe-tests` in the caches of the user. */
export function treesFolder(): string {
  const { TROUPE_TEST_CACHE: folder, XDG_CACHE_HOME: caches = join(homedir(), '.cache') } = process.env;
  return folder || join(caches, 'troupe-tests');
}

/** Returns the variables with which a program reaches the network and the registries. */
function networkVariables(): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name]) => NETWORK.test(name));
  return Object.fromEntries(entries) as Record<string, string>;
}

/** Returns the folder of the tree that is kept between runs. */
export const keptTree = (): string => join(treesFolder(), `debian-${RELEASE}`);

/** Removes the folders in `place` that runs of this program have left there when they were killed. */
export function removeLeftovers(place: string, name: RegExp): void {
  const left = (entry: string) =>
    name.test(entry) && Date.now() - statSync(join(place, entry)).mtimeMs > LEFTOVER_MS;
  for (const entry of readdirSync(place).filter(left))
    rmSync(join(place, entry), { recursive: true, force: true });
}

/** No run takes this long, so an older folder is in use no more. */
const LEFTOVER_MS = 24 * 60 * 60_000;

/** Makes a folder completely or not at all. Several processes may do so at once: the first one that is ready wins. */
async function makeWhole(folder: string, make: (unfinished: string) => Promise<void>): Promise<void> {
  const unfinished = `${folder}.${process.pid}`;
  mkdirSync(unfinished, { recursive: true });
  removeLeftovers(dirname(folder), /\.\d+$/);
  try {
    await make(unfinished);
    if (!existsSync(folder)) renameSync(unfinished, folder);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** Runs debootstrap, whose mounts end with it. Rejects with `TreeUnavailable`. */
async function debootstrap(
  folder: string,
  { path = `${process.env.PATH}${delimiter}/usr/sbin`, limitS = 900, packages = [] }: TreeOptions,
): Promise<void> {
  if (!path.split(delimiter).some((place) => existsSync(join(place, 'debootstrap'))))
    throw new TreeUnavailable('there is no debootstrap (Debian: apt install debootstrap).');
  const downloads = join(dirname(folder), 'debian-packages');
  mkdirSync(downloads, { recursive: true });
  const options = [
    '--variant=minbase',
    `--include=${[...PACKAGES, ...packages].join()}`,
    `--cache-dir=${downloads}`,
  ];
  const limit = ['timeout', '--kill-after=5', String(limitS)];
  const isolation = process.getuid?.() === 0 ? ['unshare', '--mount', '--propagation', 'private'] : [];
  const [program, ...args] = [...isolation, ...limit, 'debootstrap', ...options, RELEASE, folder];
  try {
    await execute(program!, args, { env: { ...process.env, PATH: path }, maxBuffer: 2 ** 26 });
  } catch (error) {
    const isLate = Object(error).code === EXIT_AFTER_LIMIT;
    throw new TreeUnavailable(
      isLate
        ? `debootstrap took longer than ${limitS} seconds.`
        : `debootstrap failed, perhaps without a network: ${lastWords(error)}`,
    );
  }
}

/** The status of `timeout` when it has ended the program. */
const EXIT_AFTER_LIMIT = 124;

/** Returns the last lines that a failed program has written. */
function lastWords(error: unknown): string {
  const { stdout = '', stderr = '', message } = Object(error) as Record<string, string | undefined>;
  const text = `${stdout}\n${stderr}`.trim() || (message ?? '');
  return text.trim().split('\n').slice(-3).join(' ');
}
