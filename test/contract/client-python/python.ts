/** Runs Python programs for the tests of the Python client. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import type { Owner } from '#test/support/server-fixture.ts';

/** The folder of the package. */
export const PACKAGE = join(PACKAGE_ROOT, 'src/contract/client-python');
export const PROGRAMS = join(PACKAGE_ROOT, 'test/contract/client-python/programs');
/** The packages that the client needs, as wheels. */
export const WHEELS = join(PACKAGE_ROOT, '.setup/python-client/wheels');
/** The Python with the packages that the tests need. */
export const PYTHON = join(PACKAGE_ROOT, '.setup/python-client/venv/bin/python');

const execute = promisify(execFile);

/** Runs a program and resolves with its standard output. Rejects with all its output when it fails. */
export async function run(
  command: string,
  args: readonly string[],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<string> {
  const { PATH = '', HOME = '' } = process.env;
  const options = { cwd, env: { PATH, HOME, PYTHONDONTWRITEBYTECODE: '1', ...env } };
  try {
    return (await execute(command, [...args], { ...options, maxBuffer: 64 * 1024 * 1024 })).stdout;
  } catch (error) {
    const { stdout, stderr } = Object(error) as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`);
  }
}

/** Returns an empty folder outside of the project, which is removed when the owner ends. */
export function emptyFolder(owner: Owner): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-python-'));
  owner.after(async () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes the models that belong to an OpenAPI document to `target`. */
export async function writeModels(document: unknown, target: string, folder: string): Promise<void> {
  const source = join(folder, 'openapi.json');
  writeFileSync(source, JSON.stringify(document));
  await run(PYTHON, [join(PACKAGE, 'scripts/write_models.py'), source, target], { cwd: folder });
}

/** Writes the synchronous client to a folder. */
export async function writeSync(target: string): Promise<void> {
  await run(PYTHON, [join(PACKAGE, 'scripts/write_sync.py'), target], { cwd: PACKAGE });
}
