import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The directory of this installation, which contains package.json. It is searched upwards from this module, because the
 * module may be compiled into `dist/src` or bundled into `dist/server`.
 */
export const PACKAGE_ROOT = findPackageRoot();

function findPackageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder))
      throw new Error('Troupe was not started from an installation: no package.json was found above it.');
    folder = dirname(folder);
  }
  return folder;
}
