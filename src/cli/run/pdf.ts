/**
 * Prints a page as PDF with a browser of this machine. The page comes from a notebook, so the browser is confined: it sees the
 * system's programs and fonts and the page, writes only into the page's folder, and has no network, no other processes and no
 * home.
 */
import { execFile } from 'node:child_process';
import {
  accessSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { CommandFailure, EXIT } from '../exit-code.ts';

const BROWSERS = [
  'chromium',
  'chromium-browser',
  'google-chrome-stable',
  'google-chrome',
  'microsoft-edge-stable',
  'microsoft-edge',
  'chrome-headless-shell',
];

const TIMEOUT_MS = 120_000;

/**
 * Runs a program in a root of its own. Arguments: a folder with an empty `root` and the folder `page`, the folder of
 * the program, the program and its arguments. Only these are mounted, and all but `page` and two folders in memory are
 * read-only.
 */
const SHUT_IN = `set -eu
folder=$1; programs=$2; shift 2
root=$folder/root
mount --make-rprivate /
mount -t tmpfs -o mode=755 none "$root"
mkdir "$root/page" "$root/proc" "$root/tmp" "$root/dev" "$root/dev/shm" "$root/etc"
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
cd "$root"
exec chroot "$root" "$@"`;

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

/** The browser's own sandbox is off, because it cannot be nested in this one, which is narrower. */
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--no-first-run',
  '--disable-extensions',
  '--disable-background-networking',
  '--user-data-dir=/tmp/profile',
  '--no-pdf-header-footer',
  '--print-to-pdf=/page/report.pdf',
  'file:///page/report.html',
];

/** Returns the browser that prints. Throws `CommandFailure`, with advice, when this machine has none. */
export function findBrowser(path = ''): string {
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
  throw new CommandFailure(
    'A PDF is printed by Chromium, Chrome or Edge, and none of them is installed here. Install one, or write an .html file and print it from a browser.',
    EXIT.usage,
  );
}

/**
 * Returns the page as PDF. Rejects with `CommandFailure` when it cannot be printed, the browser cannot be shut in here, or `signal`
 * aborts.
 */
export async function printPdf(browser: string, page: string, signal?: AbortSignal): Promise<Uint8Array> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-pdf-'));
  try {
    mkdirSync(join(folder, 'root'));
    mkdirSync(join(folder, 'page'));
    writeFileSync(join(folder, 'page/report.html'), page);
    const program = ['sh', '-c', SHUT_IN, 'sh', folder, dirname(browser), browser, ...FLAGS];
    await promisify(execFile)('unshare', [...NAMESPACES, ...program], {
      env: {
        PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
        HOME: '/tmp',
        LANG: 'C.UTF-8',
      },
      timeout: TIMEOUT_MS,
      killSignal: 'SIGKILL',
      ...(signal === undefined ? {} : { signal }),
    });
    return readFileSync(join(folder, 'page/report.pdf'));
  } catch (error) {
    const { stderr = '', killed = false } = Object(error) as { stderr?: string; killed?: boolean };
    const words = /^(?:unshare|mount|sh|mkdir|chroot|cp): .*/m.exec(stderr)?.[0];
    const why = killed
      ? `${browser} did not end within ${TIMEOUT_MS / 1000} seconds`
      : words === undefined
        ? `${browser} did not print it`
        : `the browser cannot be kept from files and network on this machine (${words})`;
    throw new CommandFailure(
      `The PDF was not made: ${why}. Write an .html file and print it from a browser.`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
