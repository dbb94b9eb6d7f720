import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PACKAGE_ROOT } from './package-root.ts';

/** The argument of a bundled program with which it imports modules (`src/setup/program.mjs`). It is absent outside of bundles. */
declare const importModule: ((url: string) => Promise<unknown>) | undefined;

/**
 * Imports a module of `src/setup`, which is plain JavaScript and not part of the build. The caller
 * states the module's type.
 */
export async function importSetUp<Module>(name: string): Promise<Module> {
  const { href } = pathToFileURL(join(PACKAGE_ROOT, 'src/setup', `${name}.mjs`));
  const module = typeof importModule === 'function' ? importModule(href) : import(href);
  return (await module) as Module;
}

/**
 * Imports a package that contains only ES modules, which a bundle cannot require. The caller states
 * the package's type.
 */
export async function importPackage<Module>(name: string): Promise<Module> {
  const { href } = pathToFileURL(createRequire(import.meta.url).resolve(name));
  const module = typeof importModule === 'function' ? importModule(href) : import(href);
  return (await module) as Module;
}
