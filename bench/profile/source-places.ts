/** Finds the source of a function that was called in a bundle, by the bundle's source map. */
import { existsSync, readFileSync } from 'node:fs';
import type { Runtime } from 'node:inspector';
import { SourceMap } from 'node:module';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

const maps = new Map<string, SourceMap | undefined>();

/**
 * Returns the place in the form `src/http/edge/exchange.ts:120`, or the name of the package. Empty
 * for a function without a file.
 */
export function placeOf({ url, lineNumber, columnNumber }: Runtime.CallFrame): string {
  if (!url.startsWith('file:')) return url;
  const entry = mapOf(fileURLToPath(url))?.findEntry(lineNumber, columnNumber);
  if (entry === undefined || !('originalSource' in entry)) return `${basename(url)}:${lineNumber + 1}`;
  const path = entry.originalSource.replace(/^.*node_modules\//, '').replace(/^(?:.*\/)?\.\.\//, '');
  return `${path}:${entry.originalLine + 1}`;
}

function mapOf(file: string): SourceMap | undefined {
  if (!maps.has(file)) maps.set(file, existsSync(`${file}.map`) ? read(`${file}.map`) : undefined);
  return maps.get(file);
}

function read(path: string): SourceMap {
  return new SourceMap(JSON.parse(readFileSync(path, 'utf8')) as ConstructorParameters<typeof SourceMap>[0]);
}
