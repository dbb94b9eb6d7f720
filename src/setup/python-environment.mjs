// Creates the managed Python environment: `.venv` with exactly the packages that src/confined/python/requirements.txt pins.
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './children.mjs';
import { SetupError } from './console.mjs';
import { settingOf } from './settings.mjs';
import { digest, readStamp, writeStamp } from './stamps.mjs';

/** The announcement of set-up while the step runs. */
export const title = 'creating the Python environment';

const OLDEST_PYTHON = [3, 11];
const DEBIAN = 'On Debian or Ubuntu: apt install python3 python3-venv';

/**
 * Returns why the step must run, or undefined when it need not, or when the operator provides another Python, in the environment or in
 * the settings of the folder `cwd`.
 */
export function pending(root, cwd = process.cwd()) {
  if (settingOf('TROUPE_PYTHON', 'python', cwd) !== undefined) return undefined;
  return readStamp(stampPath(root)) === wanted(root) ? undefined : 'its requirements have changed';
}

/** Creates the environment and installs the packages. Rejects with a `SetupError`. */
export async function perform(root, keepOpen) {
  const venv = join(root, '.venv');
  if (!isInstalled(root)) {
    requireWritable(root);
    if (!(await works(venv, keepOpen))) {
      const python = await findPython(keepOpen);
      const failure = 'The Python environment cannot be created';
      await run(python, ['-m', 'venv', '--clear', venv], { cwd: root, failure, keepOpen });
    }
    const quiet = ['--disable-pip-version-check', '--no-input', '--quiet', '--progress-bar', 'off'];
    const args = ['-m', 'pip', 'install', ...quiet, '--requirement', requirementsPath(root)];
    const failure = 'The Python packages cannot be installed';
    await run(join(venv, 'bin', 'python'), args, { cwd: root, failure, keepOpen });
  }
  writeStamp(stampPath(root), wanted(root));
}

/** Throws a `SetupError` when this user cannot write into the installation, because another one has installed it. */
function requireWritable(root) {
  try {
    accessSync(root, constants.W_OK);
  } catch {
    throw new SetupError(
      `The Python environment in ${root} is missing or old, and this user cannot write there. Run \`troupe setup\` as the user who installed Troupe.`,
    );
  }
}

const requirementsPath = (root) => join(root, 'src', 'confined', 'python', 'requirements.txt');
const stampPath = (root) => join(root, '.venv', '.troupe-stamp');

function wanted(root) {
  return digest(readFileSync(requirementsPath(root), 'utf8'));
}

/** Returns whether `.venv` has every pinned package in its version, by the records that pip leaves there. */
export function isInstalled(root) {
  const lib = join(root, '.venv', 'lib');
  let installed;
  try {
    const [version] = readdirSync(lib).filter((name) => name.startsWith('python3.'));
    installed = new Set(
      readdirSync(join(lib, version, 'site-packages'))
        .filter((name) => name.endsWith('.dist-info'))
        .map((name) => name.slice(0, -'.dist-info'.length))
        .map((name) => pin(name.slice(0, name.lastIndexOf('-')), name.slice(name.lastIndexOf('-') + 1))),
    );
  } catch {
    return false; // the environment is missing or incomplete
  }
  return pins(readFileSync(requirementsPath(root), 'utf8')).every((wantedPin) => installed.has(wantedPin));
}

function pins(requirements) {
  const lines = requirements.split('\n').map((line) => line.replace(/#.*/, '').trim());
  return lines.filter((line) => line !== '').map((line) => pin(...line.split('==')));
}

function pin(name, version) {
  return `${name.toLowerCase().replace(/[-_.]+/g, '-')}==${version}`;
}

async function works(venv, keepOpen) {
  try {
    await run(join(venv, 'bin', 'python'), ['-m', 'pip', '--version'], { failure: 'pip', keepOpen });
    return true;
  } catch {
    return false;
  }
}

async function findPython(keepOpen) {
  const program = 'import sys; print("%d.%d" % sys.version_info[:2]); import venv, ensurepip';
  let version;
  try {
    version = await run('python3', ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], {
      failure: '',
      keepOpen,
    });
  } catch {
    throw new SetupError(`python3 is missing. ${DEBIAN}`);
  }
  const [major, minor] = version.trim().split('.').map(Number);
  if (major < OLDEST_PYTHON[0] || (major === OLDEST_PYTHON[0] && minor < OLDEST_PYTHON[1])) {
    const oldest = OLDEST_PYTHON.join('.');
    throw new SetupError(`Python ${oldest} or later is needed; python3 here is ${version.trim()}. ${DEBIAN}`);
  }
  try {
    await run('python3', ['-c', program], { failure: '', keepOpen });
  } catch {
    throw new SetupError(`python3 has no venv module. ${DEBIAN}`);
  }
  return 'python3';
}
