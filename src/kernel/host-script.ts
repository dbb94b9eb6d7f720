import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A script of the kernel host in this package, whether this module runs from src/ or compiled from dist/. */
export function findHostScript(name = 'zygote.py'): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    if (folder === dirname(folder)) throw new Error('this module lies in no package');
    folder = dirname(folder);
  }
  return join(folder, 'src/kernel/host', name);
}
