import { join } from 'node:path';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';

/** Returns the path of a script of the kernel host. The scripts are Python and lie in `src`, not in `dist`. */
export function findHostScript(name = 'zygote.py'): string {
  return join(PACKAGE_ROOT, 'src/confined/python', name);
}
