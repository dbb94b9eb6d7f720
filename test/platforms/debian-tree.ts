/** A Debian tree in a directory, and programs that run in it: as an ordinary user, with the network and the processes of this machine. */
import { type ChildProcess, execFile, type SpawnOptions, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** The user of the tree, who is in no list of users. */
export const USER = 4711;
const PACKAGES = ['ca-certificates', 'curl', 'python3', 'python3-venv'];
/** The variables of this machine that say how its network and its registries are reached. */
const NETWORK =
  /^(https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|PIP_CERT|PIP_INDEX_URL|REQUESTS_CA_BUNDLE|SSL_CERT_FILE|npm_config_registry)$/i;
/** The files of this machine that the network needs. */
const NETWORK_FILES = ['etc/resolv.conf', 'etc/hosts', 'etc/ssl/certs/ca-certificates.crt'];

/**
 * Makes the tree the root directory, with the devices and the processes of this machine, and becomes the program: it keeps the id of
 * the process. A user in a `chroot` could make no namespaces, which the confinement of kernels needs, so this is a new root.
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

/** This machine cannot make or enter a tree; the message says why. */
export class TreeUnavailable extends Error {}

export class DebianTree {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * Makes a tree of a release, unless it is there already. `path` has the folders of programs. Rejects with `TreeUnavailable`, and
   * leaves no part of a tree.
   */
  static async make(
    folder: string,
    release: string,
    path = `${process.env.PATH}${delimiter}/usr/sbin`,
  ): Promise<DebianTree> {
    if (!existsSync(folder)) {
      const unfinished = `${folder}.${process.pid}`;
      mkdirSync(unfinished, { recursive: true });
      try {
        await execute(
          'debootstrap',
          ['--variant=minbase', `--include=${PACKAGES.join()}`, release, unfinished],
          { env: { ...process.env, PATH: path }, maxBuffer: 2 ** 26 },
        );
        renameSync(unfinished, folder);
      } catch (error) {
        throw new TreeUnavailable(reasonOf(error));
      } finally {
        rmSync(unfinished, { recursive: true, force: true });
      }
    }
    for (const file of NETWORK_FILES)
      if (existsSync(`/${file}`)) copyFileSync(`/${file}`, join(folder, file));
    return new DebianTree(folder);
  }

  /** Starts a program in a folder of the tree. The returned process is that program. */
  start(
    [command, ...args]: readonly [string, ...string[]],
    { folder, path, env = {} }: Situation,
    options: SpawnOptions = {},
  ): ChildProcess {
    const network = Object.entries(process.env).filter(([name]) => NETWORK.test(name));
    const entering = ['--mount', '--propagation', 'private', 'sh', '-c', ENTER, 'sh'];
    return spawn('unshare', [...entering, this.folder, String(USER), folder, command, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...options,
      env: {
        ...Object.fromEntries(network),
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
}

function reasonOf(error: unknown): string {
  const { code, stdout = '' } = Object(error) as { code?: unknown; stdout?: string };
  if (code === 'ENOENT') return 'there is no debootstrap (Debian: apt install debootstrap).';
  const last = stdout.trim().split('\n').slice(-3).join(' ');
  return `debootstrap failed, perhaps without a network: ${last}`;
}
