// Installs `node_modules` as package-lock.json describes it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './children.mjs';
import { SetupError } from './console.mjs';
import { digest, readIfPresent, readStamp, writeStamp } from './stamps.mjs';

/** The announcement of set-up while the step runs. */
export const title = 'installing the npm packages';

/** Returns why the step must run, or undefined when nothing has to be done. */
export function pending(root) {
  return readStamp(stampPath(root)) === wanted(root)
    ? undefined
    : 'package.json or package-lock.json has changed';
}

/** Installs the packages and checks that the store's binary loads. Rejects with a `SetupError`. */
export async function perform(root, keepOpen) {
  if (!isInstalled(root)) {
    await install(root, keepOpen);
  }
  await requireBinary('lmdb', root, keepOpen);
  writeStamp(stampPath(root), wanted(root));
}

async function install(root, keepOpen) {
  const npm = process.env.npm_execpath;
  const [command, first] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  // No package that we use needs its install script: the binaries are inside of the packages.
  const options = ['--include=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
  const failure = 'The npm packages cannot be installed';
  const npmRun = (...args) => run(command, [...first, ...args, ...options], { cwd: root, failure, keepOpen });
  try {
    await npmRun('ci');
  } catch (error) {
    // A lock file that lacks the optional packages of another platform is still exact for this one.
    if (!/Missing: .* from lock file/.test(error.message)) throw error;
    await npmRun('install', '--no-save');
  }
}

function stampPath(root) {
  return join(root, 'node_modules', '.troupe-stamp');
}

/** The stamp includes the Node.js version: a binary that loads in one version may not load in another. */
function wanted(root) {
  const { modules } = process.versions;
  const texts = ['package.json', 'package-lock.json'].map((name) => readFileSync(join(root, name), 'utf8'));
  return digest(...texts, modules, process.platform, process.arch);
}

/** Returns whether npm's own record of `node_modules`, which it writes last, has every package of the lock file. */
export function isInstalled(root) {
  const recordText = readIfPresent(join(root, 'node_modules', '.package-lock.json'));
  if (recordText === undefined) return false;
  const record = JSON.parse(recordText).packages;
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  return Object.entries(lock).every(([path, entry]) => {
    if (path === '' || entry.optional) return true;
    return record[path]?.version === entry.version && record[path]?.integrity === entry.integrity;
  });
}

async function requireBinary(name, root, keepOpen) {
  const args = ['--input-type=module', '-e', `await import('${name}'); process.exit(0)`];
  try {
    await run(process.execPath, args, { cwd: root, failure: name, keepOpen });
  } catch (error) {
    throw new SetupError(unloadable(name, error.message));
  }
}

/**
 * Returns one line for a binary that does not load here, with the solution; `text` is the output of
 * Node.js.
 */
export function unloadable(name, text) {
  // uWebSockets.js prints a general sentence first, and the reason last.
  const named =
    text.split('\n').findLast((line) => /^\w*Error( \[\w+\])?: /.test(line)) ?? text.split('\n')[0];
  const reason = named.replace(/^\w*Error( \[\w+\])?: /, '').trim();
  const place = `Node.js ${process.version} on ${process.platform} ${process.arch}`;
  return `The binary of ${name} does not load with ${place}: ${reason}${adviceOn(reason)}`;
}

function adviceOn(reason) {
  const [, needed] = /`GLIBC_([\d.]+)' not found/.exec(reason) ?? [];
  if (needed !== undefined)
    return `. It needs glibc ${needed}, and this system has ${glibcHere()}: use a newer system, such as Debian 12, Debian 13 or Ubuntu 24.04.`;
  if (/Cannot find module '\.\/uws_/.test(reason))
    return '. Use Node.js 20, 22 or 24, on glibc, or name another copy with TROUPE_UWEBSOCKETS.';
  return '';
}

/** Returns the version of the glibc of this system, such as `2.36`; 0 where it has another library. */
export function glibcHere() {
  return process.report.getReport().header.glibcVersionRuntime ?? '0';
}
