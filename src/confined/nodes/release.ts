import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { VERSION } from '#src/base/install/version.ts';
import { findHostScript } from '../processes/host/host-script.ts';
import type { HostHello } from '../processes/host/zygote-process.ts';
import type { Release } from './protocol.ts';

/** Returns the release of this installation. `hello` is from its kernel host. */
export function releaseOf({ marimo, python }: Pick<HostHello, 'marimo' | 'python'>): Release {
  return { version: VERSION, build: digestOfPrograms(), scripts: digestOfScripts(), marimo, python };
}

/**
 * Returns a digest of the programs of this installation. The names of bundles contain digests of their contents, and are the same
 * wherever a commit is built.
 */
function digestOfPrograms(): string {
  const bundles = readdirSync(join(PACKAGE_ROOT, 'dist', 'server')).filter((name) =>
    /^(main|node)-\w+\.cjs$/.test(name),
  );
  return createHash('sha256').update(bundles.sort().join('\n')).digest('hex').slice(0, 8);
}

/** Returns a digest of the names and contents of all scripts of the kernel host. */
function digestOfScripts(): string {
  const folder = dirname(dirname(findHostScript()));
  const files = ['python', 'notebook_modules'].flatMap((name) => [...scriptsIn(join(folder, name))]).sort();
  const hash = createHash('sha256');
  for (const file of files) {
    const content = readFileSync(file);
    hash.update(`${relative(folder, file)} ${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, 8);
}

/** Yields the scripts in a folder and its subfolders, without compiled code, which may belong to another user. */
function* scriptsIn(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && entry.name !== '__pycache__') yield* scriptsIn(path);
    else if (entry.isFile() && /\.(py|json|txt)$/.test(entry.name)) yield path;
  }
}
