// Installs the generators with which the tests make clients, apart from the packages of the server and its notebooks:
// npm packages and a Python environment of their own in `.setup/generators`.
import { copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './children.mjs';
import { digest, readStamp, writeStamp } from './stamps.mjs';

/** The announcement of set-up while the step runs. */
export const title = 'installing the client generators';

const SOURCES = 'test/openapi/generators';
const NPM_FILES = ['package.json', 'package-lock.json'];
const REQUIREMENTS = 'requirements.txt';

/** Returns why the step must run, or undefined when nothing has to be done. */
export function pending(root) {
  return readStamp(stampPath(root)) === wanted(root)
    ? undefined
    : 'the versions of the generators have changed';
}

/** Installs all generators from scratch. Rejects with a `SetupError`. */
export async function perform(root, keepOpen) {
  const folder = join(root, '.setup', 'generators');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const name of NPM_FILES) copyFileSync(join(root, SOURCES, name), join(folder, name));
  const options = { cwd: folder, failure: 'The client generators cannot be installed', keepOpen };
  const python = async () => {
    await run('python3', ['-m', 'venv', 'venv'], options);
    const requirements = join(root, SOURCES, REQUIREMENTS);
    const args = ['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check'];
    await run(join(folder, 'venv', 'bin', 'python'), [...args, '--requirement', requirements], options);
  };
  const packages = () => run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], options);
  await Promise.all([packages(), python()]);
  writeStamp(stampPath(root), wanted(root));
}

const stampPath = (root) => join(root, '.setup', 'generators', '.troupe-stamp');

function wanted(root) {
  return digest(
    ...[...NPM_FILES, REQUIREMENTS].map((name) => readFileSync(join(root, SOURCES, name), 'utf8')),
  );
}
