import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The folder of this installation: the one with package.json. It is searched for from this module upwards, because the
 * module may be compiled below `dist/src` or bundled below `dist/server`.
 */
export const PACKAGE_ROOT = findPackageRoot();

function findPackageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder))
      throw new Error('Troupe does not run from an installation: no package.json was found.');
    folder = dirname(folder);
  }
  return folder;
}
