/**
 * Makes stack traces name the source files instead of places in the bundle. Node.js does that with
 * `--enable-source-maps`, but then reads and parses the maps, two megabytes, at each start. This
 * module reads them only when the first trace is shown.
 */
import { existsSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

/** The source map of each bundle that a trace has named. The process has one `Error.prepareStackTrace`, so all its apps share the maps. */
const maps = new Map<string, SourceMap | undefined>();

/** Makes `error.stack` name source files from now on. Earlier traces are unchanged. */
export function showSourcePlaces(): void {
  Error.prepareStackTrace = (error, sites) => [headOf(error), ...sites.map(lineOf)].join('\n    at ');
}

function headOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return 'Error';
  }
}

function lineOf(site: NodeJS.CallSite): string {
  const text = String(site);
  const [file, line, column] = [site.getFileName(), site.getLineNumber(), site.getColumnNumber()];
  if (!file?.startsWith('file:') || line === null || column === null) return text;
  const entry = mapOf(file)?.findEntry(line - 1, column - 1);
  if (entry === undefined || !('originalSource' in entry)) return text;
  const source = fileURLToPath(new URL(entry.originalSource, file));
  return text.replace(
    `${file}:${line}:${column}`,
    `${source}:${entry.originalLine + 1}:${entry.originalColumn + 1}`,
  );
}

function mapOf(file: string): SourceMap | undefined {
  if (!maps.has(file)) maps.set(file, readMap(`${fileURLToPath(file)}.map`));
  return maps.get(file);
}

/**
 * Returns undefined when there is no map or it cannot be read. The error is then shown with its
 * places in the bundle.
 */
function readMap(path: string): SourceMap | undefined {
  try {
    return existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : undefined;
  } catch {
    return undefined;
  }
}
