/** A Python environment that has libraries for widgets, plots and statistics in addition to the managed one. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const place = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const REQUIREMENTS = ['src/confined/python/requirements.txt', 'test/support/library-requirements.txt'].map(
  place,
);
/** An installation that takes longer than this fails. */
const TIMEOUT_MS = 240_000;

/** The interpreter, and the reason why there is none. */
export type PythonWithLibraries =
  | { readonly python: string; readonly absence: false }
  | { readonly python: ''; readonly absence: string };

/**
 * Returns an interpreter with exactly the pinned packages. The first call on a machine installs them, in a folder that stays.
 * `absence` is the reason for skipping a test where the packages cannot be installed; with `CI=true` it throws instead.
 */
export function pythonWithLibraries(): PythonWithLibraries {
  const version = createHash('sha256');
  for (const file of REQUIREMENTS) version.update(readFileSync(file));
  const folder = place(`.setup/libraries-${version.digest('hex').slice(0, 16)}`);
  const python = join(folder, 'bin', 'python');
  if (existsSync(python)) return { python, absence: false };
  mkdirSync(place('.setup'), { recursive: true });
  const made = mkdtempSync(place('.setup/libraries-new-'));
  try {
    const managed = place('.venv/bin/python');
    const uv = (...args: string[]) =>
      execFileSync(managed, ['-m', 'uv', '--quiet', ...args], {
        stdio: ['ignore', 'ignore', 'inherit'],
        timeout: TIMEOUT_MS,
      });
    uv('venv', '--relocatable', '--allow-existing', '--python', managed, made);
    const files = REQUIREMENTS.flatMap((file) => ['--requirement', file]);
    uv(
      'pip',
      'install',
      '--no-deps',
      '--only-binary',
      ':all:',
      '--python',
      join(made, 'bin/python'),
      ...files,
    );
    renameIfAbsent(made, folder);
    return { python, absence: false };
  } catch (error) {
    if (process.env.CI === 'true') throw error;
    return { python: '', absence: `the packages of ${REQUIREMENTS[1]} cannot be installed` };
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

/** Renames a folder unless another process has made the target in the meantime. */
function renameIfAbsent(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(join(to, 'bin', 'python'))) throw error;
  }
}
