// Installs the Python packages with which the tests check the Python client, in an environment of their own in
// `.setup/python-client`. Also downloads the packages that the client needs, so that tests can install its wheel in
// new environments without the network. `npm run python-client` begins with this file.
import { mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './children.mjs';
import { reporting } from './console.mjs';
import { ROOT, setUp } from './setup.mjs';
import { digest, readStamp, writeStamp } from './stamps.mjs';

/** The announcement of set-up while the step runs. */
export const title = 'installing the packages of the Python client';

const REQUIREMENTS = 'test/contract/client-python/requirements.txt';
const DEPENDENCIES = ['httpx2', 'msgspec'];

/** Returns why the step must run, or undefined when nothing has to be done. */
export function pending(root) {
  return readStamp(stampPath(root)) === wanted(root) ? undefined : 'its requirements have changed';
}

/** Installs everything from scratch. Rejects with a `SetupError`. */
export async function perform(root, keepOpen) {
  const folder = join(root, '.setup', 'python-client');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const options = {
    cwd: folder,
    failure: 'The packages of the Python client cannot be installed',
    keepOpen,
  };
  const requirements = join(root, REQUIREMENTS);
  const pip = ['-m', 'pip', '--quiet', '--no-input', '--disable-pip-version-check'];
  const python = join(folder, 'venv', 'bin', 'python');
  await run('python3', ['-m', 'venv', 'venv'], options);
  await run(python, [...pip, 'install', '--requirement', requirements], options);
  const download = ['download', '--dest', 'wheels', '--constraint', requirements, ...DEPENDENCIES];
  await run(python, [...pip, ...download], options);
  writeStamp(stampPath(root), wanted(root));
}

const stampPath = (root) => join(root, '.setup', 'python-client', '.troupe-stamp');

function wanted(root) {
  return digest(readFileSync(join(root, REQUIREMENTS), 'utf8'));
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url))
  await reporting(() => setUp(ROOT, [{ title, pending, perform }]));
