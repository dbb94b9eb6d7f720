/**
 * A Debian tree with systemd as its first process, in namespaces of its own: it sees no process, no network but loopback, and no
 * control group of this machine. Units are started there as on a machine.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { eventually } from '#test/support/processes.ts';
import { TreeUnavailable } from './debian-tree.ts';

const execute = promisify(execFile);

/** Packages of Debian that a tree needs to be booted. */
export const BOOT_PACKAGES = ['systemd', 'systemd-sysv', 'dbus', 'procps'];

/**
 * Makes the tree the root directory, with devices, processes and control groups of its own, and
 * becomes systemd. A `/proc` of the new process namespace replaces that of this machine: a service
 * may then make further ones in user namespaces, as it may on a machine.
 */
const BOOT = `set -eu
mount --make-rprivate /
mount --rbind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for device in null zero full random urandom tty; do : > dev/$device; mount --bind /dev/$device dev/$device; done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
: > dev/console
mount -t tmpfs -o mode=755 tmpfs run
mkdir run/before
pivot_root . run/before
umount -l /run/before
exec env -i container=tests PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target`;

const NAMESPACES = ['--pid', '--fork', '--mount', '--uts', '--ipc', '--net', '--cgroup'];

/** The output of a program in the system, and its exit code. */
export interface Ran {
  readonly code: number;
  readonly output: string;
}

export class BootedDebian implements AsyncDisposable {
  readonly #launcher: ChildProcess;
  readonly #init: number;

  private constructor(launcher: ChildProcess, init: number) {
    this.#launcher = launcher;
    this.#init = init;
  }

  /**
   * Boots the tree in `folder`, which the system changes. Rejects with `TreeUnavailable` when this machine cannot do that. Disposing
   * ends all processes of the system.
   */
  static async boot(folder: string): Promise<BootedDebian> {
    const command = [...NAMESPACES, '--kill-child', 'sh', '-c', BOOT, 'sh', folder];
    const launcher = spawn('unshare', command, { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    launcher.stderr?.on('data', (text: Buffer) => {
      said += text.toString();
    });
    const init = await eventually('systemd runs', () => {
      if (launcher.exitCode !== null)
        throw new TreeUnavailable(`the Debian cannot be booted: ${said.trim()}`);
      const [child] = childrenOf(launcher.pid!);
      return child !== undefined && nameOf(child) === 'systemd' && child;
    });
    const booted = new BootedDebian(launcher, init);
    // `degraded` is as good: a few units of a whole machine have nothing to do here.
    await eventually('the Debian has booted', async () =>
      /^(running|degraded)$/m.test((await booted.run('systemctl is-system-running')).output),
    );
    return booted;
  }

  /** Runs a script as root in the system, with its network. Never rejects: the exit code is part of the result. */
  async run(script: string): Promise<Ran> {
    const entering = [
      '--target',
      String(this.#init),
      '--mount',
      '--uts',
      '--ipc',
      '--net',
      '--pid',
      '--cgroup',
    ];
    const clean = [
      'env',
      '-i',
      'HOME=/root',
      'LANG=C.UTF-8',
      'PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    ];
    try {
      const { stdout, stderr } = await execute(
        'nsenter',
        [...entering, ...clean, 'bash', '-euc', `cd /root\n${script}`],
        { maxBuffer: 2 ** 26 },
      );
      return { code: 0, output: stdout + stderr };
    } catch (error) {
      const { code, stdout = '', stderr = '' } = Object(error) as Partial<Record<string, unknown>>;
      return { code: typeof code === 'number' ? code : 1, output: `${stdout}${stderr}` };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#launcher, 'close');
    if (this.#launcher.kill('SIGKILL')) await ended; // the first process of the system ends with it, and all others with that
  }
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return text === '' ? [] : text.split(' ').map(Number);
}

function nameOf(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
}
