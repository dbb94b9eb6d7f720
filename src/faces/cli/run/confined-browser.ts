/**
 * A confined browser on this machine. It sees the system's programs and fonts, and one folder for its page, which is the only
 * folder that it can write. It has no network, no other processes, no home and no capabilities.
 */
import { accessSync, constants, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

const BROWSERS = [
  'chromium',
  'chromium-browser',
  'google-chrome-stable',
  'google-chrome',
  'microsoft-edge-stable',
  'microsoft-edge',
  'chrome-headless-shell',
];

/**
 * Runs a program in an isolated root. Arguments: a folder with an empty `root` and the folder `page`, the folder of the program,
 * the program and its arguments. Only these folders are mounted, and all except `page` and two folders in memory are read-only.
 *
 * The old root is unmounted, because a process with the capabilities of its user namespace can leave a mere `chroot`. The program
 * has no capabilities and cannot gain any. Nor can it make another user namespace, in which it would have capabilities.
 */
const SHUT_IN = `set -eu
folder=$1; programs=$2; shift 2
root=$folder/root
mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$root"
mkdir "$root/page" "$root/proc" "$root/tmp" "$root/dev" "$root/dev/shm" "$root/etc" "$root/old"
mount -t tmpfs none "$root/tmp"
show() {
  if [ -L "$1" ]; then cp -P "$1" "$root$1"; return; fi
  if [ ! -d "$1" ] || [ -d "$root$1" ]; then return; fi
  mkdir -p "$root$1"; mount --bind "$1" "$root$1"; mount -o remount,bind,ro "$root$1"
}
for place in /usr /bin /sbin /lib /lib32 /lib64 /etc/fonts /etc/alternatives /etc/chromium /etc/chromium.d "$programs"; do
  show "$place"
done
mount --bind "$folder/page" "$root/page"
mount -t tmpfs none "$root/dev/shm"
for device in null zero random urandom; do
  : > "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t proc none "$root/proc"
mount -o remount,bind,ro "$root"
cd "$root"
pivot_root . old
cd /
unset OLDPWD
umount -l /old
echo 0 > /proc/sys/user/max_user_namespaces
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all --securebits=+noroot,+noroot_locked -- "$@"`;

const NAMESPACES = [
  '--user',
  '--map-root-user',
  '--mount',
  '--net',
  '--pid',
  '--ipc',
  '--uts',
  '--fork',
  '--kill-child',
];

/** The browser's own sandbox is off, because it cannot be nested in this confinement, which allows less. */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-extensions',
  '--disable-background-networking',
  '--user-data-dir=/tmp/profile',
];

/** Returns the path of a browser in the folders of `path`, which is separated as in `PATH`; undefined when there is none. */
export function findBrowser(path = ''): string | undefined {
  for (const name of BROWSERS)
    for (const folder of path.split(delimiter)) {
      const file = join(folder, name);
      try {
        accessSync(file, constants.X_OK);
        return realpathSync(file);
      } catch {
        // the next one
      }
    }
  return undefined;
}

/** The command that starts a browser in its confinement. */
export interface ConfinedBrowser extends Disposable {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** The folder that the browser sees as `/page`. */
  readonly folder: string;
  arguments(flags: readonly string[]): string[];
}

/** Makes a folder for a confined browser. Disposing removes the folder, so end the browser first. */
export function confine(browser: string): ConfinedBrowser {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-page-'));
  const page = join(folder, 'page');
  for (const one of [page, join(folder, 'root')]) mkdirSync(one);
  return {
    program: 'unshare',
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      HOME: '/tmp',
      LANG: 'C.UTF-8',
    },
    folder: page,
    arguments: (flags) => [
      ...NAMESPACES,
      ...['sh', '-c', SHUT_IN, 'sh', folder, dirname(browser), browser, ...FLAGS, ...flags],
    ],
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Returns why the browser could not be confined, from its standard error; undefined when it failed for another reason. */
export function confinementFault(stderr: string): string | undefined {
  const words = /^(?:unshare|u?mount|sh|mkdir|pivot_root|setpriv|cp): .*/m.exec(stderr)?.[0];
  return words && `the browser cannot be kept from files and network on this machine (${words})`;
}
