import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { plainPath } from '../plain-path.ts';

const IMPORT = /(?:^|;)[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)/gm;

/**
 * Returns the modules and packages in `directory` that `code` imports, directly or through other modules, as sorted paths from
 * `directory`. Import statements are found by their form, so an import inside a string counts as well. Throws `CommandFailure`
 * for a module that is a link.
 */
export function localImports(code: string, directory: string): string[] {
  const found = new Set<string>();
  const waiting = [code];
  for (let text = waiting.pop(); text !== undefined; text = waiting.pop()) {
    for (const name of importedNames(text)) {
      const path = pathOf(name, directory);
      if (path === undefined || found.has(path)) continue;
      found.add(path);
      waiting.push(...codesOf(plainPath(path, directory)));
    }
  }
  return [...found].sort();
}

/** Returns the top-level names that the statements of `code` import. */
function importedNames(code: string): string[] {
  return [...code.matchAll(IMPORT)].flatMap(([, several, one]) =>
    one !== undefined ? [topOf(one)] : (several ?? '').split(',').map((part) => topOf(part.trim())),
  );
}

function topOf(name: string): string {
  return /^\w*/.exec(name)?.[0] ?? '';
}

/** Returns the path of a name, in Python's order: a package, a module, then a folder of modules without `__init__.py`. */
function pathOf(name: string, directory: string): string | undefined {
  if (name === '') return undefined;
  const folder = join(directory, name);
  if (existsSync(join(folder, '__init__.py'))) return name;
  if (existsSync(`${folder}.py`)) return `${name}.py`;
  return codesOf(folder).length > 0 ? name : undefined;
}

/**
 * Returns the code of a module, or of all modules in a folder and its subfolders; an empty list when there is no such module or
 * folder.
 */
function codesOf(path: string): string[] {
  if (path.endsWith('.py')) return [readFileSync(path, 'utf8')];
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() || (entry.isFile() && entry.name.endsWith('.py'))
      ? codesOf(join(path, entry.name))
      : [],
  );
}
