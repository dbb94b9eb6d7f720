// The native addon of uWebSockets.js: finds the copy that runs, and prepares the copy from the registry for older
// systems.
//
// The addons of the package were linked on glibc 2.38. There the compiler replaces strtol, strtoul and sscanf by
// functions that also read binary numbers ("0b1"). The addons need nothing else that is newer than glibc 2.36. Set-up
// writes a copy that refers to the older three functions, which every glibc has. The digests of both files are
// pinned: only known bytes are changed, and only known bytes result.
import { createHash } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { run } from './children.mjs';
import { SetupError } from './console.mjs';
import { withOlderFunctions } from './elf.mjs';
import { glibcHere, unloadable } from './node-packages.mjs';
import { settingOf } from './settings.mjs';

/** The announcement of set-up while the step runs. */
export const title = 'preparing uWebSockets.js';

const NAME = 'uWebSockets.js';
const LINKED_AGAINST = 'GLIBC_2.38';
/** The SHA-256 of each addon of the package, and of its prepared copy. The last number of a name is the ABI of Node.js. */
const DIGESTS = {
  uws_linux_x64_115: [
    '5b126ee00bf754b02e97e4c27090365a8562c5820c93f93918ac2212d4503e91',
    '0fdb9722352c4e0f519b42ad8b0c2bd4544b2c27484c1d49ddf143bfd1637cbb',
  ],
  uws_linux_x64_127: [
    '4b55b1f2cb7a7913febbb65a89496412b96af77e838552980092ba6b33723aac',
    '4ea0943df7d3202b3ada5eb01c40c37c63bb192fd9c7b1abae5082c5cc1f2803',
  ],
  uws_linux_x64_137: [
    '98128405dba2fb608448e921a979530f70c946a2cc9889c15f2fa70c2d00ab05',
    '8d5817f3a52803cb69a0e3d54f6487b533fda603aa63dab8ea09f9762d992e0b',
  ],
  uws_linux_x64_141: [
    '813d788b347c6fd76b779d8932311ec05a044e612b4b83af220f16e6ea789683',
    '395fee5c7a644ad0964cc26651b5dd12833c147123c69dbe938fe17eb13a2760',
  ],
  uws_linux_arm64_115: [
    '6bdbc8ff976b4371af1906175e9025804bacc38a414969f4f02314e6b99f206c',
    '68016401b908e59200b227ade8fe6b36bc9f8e30892e54cefd590a960612d7a6',
  ],
  uws_linux_arm64_127: [
    '82b79bd18d1e3563de336156005bd01b7f39fc387b65173d69a29da4ee79f895',
    'b28ee349e8a15aa5fd30988fc3935eb1b8898e44f27f2ae903ad9e959567c1e6',
  ],
  uws_linux_arm64_137: [
    '88618b30ddf6b2b62310db89f40a701616676352aac5e0f6184dd8ef876199ce',
    '84c03ca18de632e52cce378f073f8b008c0817c957d2e475284ce08f75c88a77',
  ],
  uws_linux_arm64_141: [
    '81d0186dd1549ed6a7f47e68e323573fc27d69d2920527654ce2dd993af2b0ec',
    'de517c5f4cd31f4431fc07e2eb212924b0cd02e770679a36ed063b6b47c1c017',
  ],
};

/** Throws a `SetupError` when the registry has no addon for this Node.js and no other copy is named. */
export function requireAddon(versions = process.versions, cwd = process.cwd()) {
  const isMissing = process.platform === 'linux' && DIGESTS[addonName(versions)] === undefined;
  if (!isMissing || namedCopy(cwd) !== undefined) return;
  throw new SetupError(
    `The npm registry has no uWebSockets.js for Node.js ${versions.node} on ${process.arch}: use Node.js 24, 22 or 20, or name another copy with TROUPE_UWEBSOCKETS (docs/operating.md).`,
  );
}

/** Returns why the step must run. Undefined when the copy is there, when it is not needed, and when only another user can write it. */
export function pending(root, cwd = process.cwd()) {
  const path = preparedPath(root);
  if (path === undefined || existsSync(path) || namedCopy(cwd) !== undefined) return undefined;
  return isWritable(root) || isOlder(glibcHere(), LINKED_AGAINST) ? 'the addon is not prepared' : undefined;
}

/** Writes the copy, after a check that it loads. Rejects with a `SetupError`. */
export async function perform(root, keepOpen) {
  if (!isWritable(root))
    throw new SetupError(
      `uWebSockets.js is not prepared in ${root}, and this user cannot write there. Run \`troupe setup\` as the user who installed Troupe.`,
    );
  const path = preparedPath(root);
  const folder = dirname(path);
  const bytes = prepared(readFileSync(join(dirname(packaged(root)), `${addonName()}.node`)));
  mkdirSync(folder, { recursive: true });
  // Copies for other versions of Node.js stay, because a running server may have to load one again.
  const current = Object.keys(DIGESTS).map(copyName);
  for (const old of readdirSync(folder))
    if (!current.includes(old)) rmSync(join(folder, old), { recursive: true });
  const unchecked = join(folder, 'unchecked.node');
  writeFileSync(unchecked, bytes);
  for (const made of [folder, unchecked]) chmodSync(made, 0o755); // for other users, whatever the umask is
  try {
    const program = `require(${JSON.stringify(unchecked)}); process.exit(0)`;
    await run(process.execPath, ['-e', program], { cwd: root, failure: NAME, keepOpen });
  } catch (error) {
    throw new SetupError(unloadable(NAME, error.message));
  }
  renameSync(unchecked, path);
}

/** Returns the prepared form of an addon. Throws a `SetupError` when the addon, or that form, is not the pinned one. */
export function prepared(addon, name = addonName()) {
  const [before, after] = DIGESTS[name];
  requireDigest(addon, before, `${name}.node of the package`);
  const changed = withOlderFunctions(addon, LINKED_AGAINST);
  requireDigest(changed, after, `the prepared ${name}.node`);
  return changed;
}

function requireDigest(bytes, wanted, what) {
  const found = createHash('sha256').update(bytes).digest('hex');
  if (found === wanted) return;
  throw new SetupError(
    `uWebSockets.js is refused, because it is not the one of this release: ${what} has the SHA-256 ${found} instead of ${wanted}. Install Troupe again (in a checkout: remove node_modules first).`,
  );
}

/**
 * Returns the copy that runs: the path for `require`, and its origin in words. `named` is the path in the setting
 * TROUPE_UWEBSOCKETS. Throws when the package is missing.
 */
export function copyInUse(root, named) {
  if (named !== undefined) return { path: named, origin: 'named by TROUPE_UWEBSOCKETS' };
  const path = preparedPath(root);
  if (path !== undefined && existsSync(path)) return { path, origin: `${packageName(root)}, prepared` };
  return { path: packaged(root), origin: `${packageName(root)}, unchanged` };
}

/** Returns the path of the prepared copy for this Node.js, or undefined when there can be none. A stale one has another name. */
function preparedPath(root) {
  const isPinned = DIGESTS[addonName()] !== undefined;
  return isPinned ? join(root, 'dist', 'uwebsockets', copyName(addonName())) : undefined;
}

const copyName = (name) => `${name}-${DIGESTS[name][1].slice(0, 12)}.node`;

function packaged(root) {
  return createRequire(join(root, 'package.json')).resolve(NAME);
}

function packageName(root) {
  const { name, version } = JSON.parse(readFileSync(join(dirname(packaged(root)), 'package.json'), 'utf8'));
  return `${name} ${version}`;
}

const addonName = ({ modules } = process.versions) => `uws_${process.platform}_${process.arch}_${modules}`;
const namedCopy = (cwd) => settingOf('TROUPE_UWEBSOCKETS', 'uwebsockets', cwd);

function isWritable(root) {
  try {
    accessSync(existsSync(join(root, 'dist')) ? join(root, 'dist') : root, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether the version of glibc, such as 2.36, is older than a version that begins with `GLIBC_`. */
function isOlder(version, than) {
  const minor = (text) => Number(text.split('.')[1]);
  return minor(version) < minor(than);
}
