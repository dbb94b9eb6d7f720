import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

const IMPORT = /^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+([\w.]+)[ \t]+import\b)/gm;

/**
 * Returns the modules and packages in `directory` that `code` imports, and what those import in turn: paths from `directory`.
 * Statements are found by their form, so an import in a text counts as well.
 */
export function localImports(code: string, directory: string): string[] {
  const found = new Set<string>();
  const waiting = [code];
  for (let text = waiting.pop(); text !== undefined; text = waiting.pop()) {
    for (const name of importedNames(text)) {
      const path = pathOf(name, directory);
      if (path === undefined || found.has(path)) continue;
      found.add(path);
      if (path.endsWith('.py')) waiting.push(readFileSync(join(directory, path), 'utf8'));
      else waiting.push(initOf(join(directory, path)));
    }
  }
  return [...found].sort();
}

function importedNames(code: string): string[] {
  return [...code.matchAll(IMPORT)].flatMap(([, several, one]) =>
    one !== undefined
      ? [topOf(one)]
      : (several ?? '').split(',').map((part) => topOf(part.trim().split(/\s/, 1)[0] ?? '')),
  );
}

function topOf(name: string): string {
  return name.split('.', 1)[0] ?? '';
}

function pathOf(name: string, directory: string): string | undefined {
  if (name === '') return undefined;
  if (existsSync(join(directory, `${name}.py`))) return `${name}.py`;
  const folder = join(directory, name);
  return existsSync(join(folder, '__init__.py')) && statSync(folder).isDirectory() ? name : undefined;
}

function initOf(folder: string): string {
  return readFileSync(join(folder, '__init__.py'), 'utf8');
}
