/** Python packages that only a measurement needs, in a folder beside the managed environment, which stays as it is. */
import { execFile } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const FOLDER = fileURLToPath(new URL('../../.bench-packages/', import.meta.url));

/**
 * The folder of one pinned requirement such as `psycopg[binary]==3.3.9`, with all that it needs, for `sys.path`.
 * Installed by the first call and kept. Rejects when pip does, with what it says.
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
