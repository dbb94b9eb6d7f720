/** Installs Python packages that only a measurement needs, outside of the managed environment. */
import { execFile } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const FOLDER = fileURLToPath(new URL('../../.bench-packages/', import.meta.url));

/**
 * Returns a directory for `sys.path` with one pinned requirement, such as `psycopg[binary]==3.3.9`, and its dependencies.
 * The first call installs it. Rejects with the output of pip when that fails.
 */
export async function pythonPackages(python: string, requirement: string): Promise<string> {
  const place = join(FOLDER, requirement.replace(/[^\w.]+/g, '-'));
  if (existsSync(place)) return place;
  const unfinished = `${place}.${process.pid}`;
  const quiet = ['--disable-pip-version-check', '--no-input', '--quiet', '--progress-bar', 'off'];
  try {
    await promisify(execFile)(python, [
      '-m',
      'pip',
      'install',
      ...quiet,
      '--target',
      unfinished,
      requirement,
    ]);
    renameSync(unfinished, place);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return place;
}
