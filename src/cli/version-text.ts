import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '#src/core/package-root.ts';
import { VERSION } from '#src/core/version.ts';

const COMMIT_CHARS = 12;

/** Returns the version and the commit of this installation, such as `1.0.0 (0123456789ab)`. */
export function versionText(): string {
  const commit = commitOf(PACKAGE_ROOT)?.slice(0, COMMIT_CHARS);
  return commit === undefined ? VERSION : `${VERSION} (${commit})`;
}

/** Returns the commit that `npm pack` has noted in a package, or the one that is checked out; undefined when neither is known. */
function commitOf(root: string): string | undefined {
  const noted = join(root, 'dist/commit.txt');
  if (existsSync(noted)) return readFileSync(noted, 'utf8').trim();
  if (!existsSync(join(root, '.git'))) return undefined;
  try {
    return execFileSync('git', ['-C', root, 'rev-parse', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return undefined; // git is missing, or does not trust the owner of the checkout
  }
}
