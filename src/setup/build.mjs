// The build: compiles TypeScript into dist/, removes outputs whose source is gone, bundles the programs, and keeps their compiled code.
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundle } from './bundle.mjs';
import { run } from './children.mjs';
import { writeCodeCaches } from './code-cache.mjs';
import { filesBelow, fingerprint, readStamp, writeStamp } from './stamps.mjs';

/** The announcement of set-up while the step runs. */
export const title = 'building';

const CONSOLE = join('src', 'faces', 'console');
const SETUP = join('src', 'setup');
const FOLDERS = ['src', 'machines', 'storage', 'test', 'bench'];
const SETTINGS = ['tsconfig.json', 'package.json', 'package-lock.json'];

/** Returns why the step must run, or undefined when nothing has to be done. */
export function pending(root) {
  return readStamp(stampPath(root)) === wanted(root) ? undefined : 'sources have changed';
}

/** Compiles and bundles. Rejects with a `SetupError` that holds the compiler's messages. */
export async function perform(root, keepOpen) {
  const stamp = wanted(root); // taken before tsc runs, so that a file that changes in between is built next time
  const tsc = join(root, 'node_modules', '.bin', 'tsc');
  const compile = (project) =>
    run(tsc, ['-p', project, '--pretty', 'false'], { cwd: root, failure: 'The build failed', keepOpen });
  await compile(root);
  // The console is checked with the types of browsers; esbuild writes it.
  if (existsSync(join(root, CONSOLE, 'tsconfig.json'))) await compile(join(root, CONSOLE));
  removeOrphans(root);
  await bundle(root);
  await writeCodeCaches(root);
  writeStamp(stampPath(root), stamp);
}

const stampPath = (root) => join(root, 'dist', '.troupe-stamp');

function sources(root) {
  return FOLDERS.flatMap((folder) => filesBelow(root, folder, '.ts'));
}

function wanted(root) {
  const steps = filesBelow(root, SETUP, '.mjs');
  return fingerprint(root, [
    ...new Set([...SETTINGS, ...steps, ...sources(root), ...filesBelow(root, CONSOLE, '')]),
  ]);
}

/** Deletes the outputs of sources that no longer exist. */
export function removeOrphans(root) {
  const kept = new Set(sources(root).map((source) => `dist/${source.slice(0, -'.ts'.length)}`));
  for (const suffix of ['.js', '.js.map']) {
    for (const output of FOLDERS.flatMap((folder) => filesBelow(root, join('dist', folder), suffix))) {
      if (!kept.has(output.slice(0, -suffix.length))) rmSync(join(root, output), { force: true });
    }
  }
}
