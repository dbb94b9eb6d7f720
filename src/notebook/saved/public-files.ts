/**
 * The files in the folder `public` beside a notebook, to which outputs refer by relative addresses. An exported HTML page is
 * opened elsewhere, so it contains these files, like marimo's exports.
 */

import { inSlices } from '#src/base/async/slices.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import type { Results } from './file-results.ts';

/** The name of the folder beside the notebook. */
export const PUBLIC_FOLDER = 'public';
/** The largest file that a page contains: marimo's own limit. */
const MAX_FILE_BYTES = 10 * 1024 * 1024;
/** The limit of all files of a page together. */
const MAX_ALL_BYTES = 16 * 1024 * 1024;
/** The limit of the inserted text, in which a file is repeated for each reference. */
const MAX_INSERTED_CHARS = 1.5 * MAX_ALL_BYTES;
const MAX_FILES = 100;
const HTML_TYPES: ReadonlySet<string> = new Set(['text/html', 'text/markdown']);
/** The beginning of a reference to a public file. */
const PUBLIC = String.raw`(?:\.?\/)?public\/`;
/** Matches an attribute with one reference. Quotes in text are escaped in HTML, so text does not match. */
const REFERENCE = new RegExp(String.raw`(\ssrc=)(["'])(${PUBLIC}[^"'<>]{1,1024})\2`, 'g');
/**
 * Matches an attribute with a list of pictures or with styles, and a style sheet. Each part ends before the next quote or the
 * next `<`, so each character is examined once.
 */
const PLACES = /\s(?:(?:image)?srcset|style)=(?:"[^"<]*"|'[^'<]*')|<style\b[^<>]*>[^<]*/gi;
/** Matches the references in a list of pictures. Each reference begins the list or follows a comma. */
const IN_LIST = new RegExp(String.raw`((?:=["']|,\s|\d[wx],)\s*)()(${PUBLIC}[^"'<>\s,]{1,1024})`, 'g');
/** Matches the references in styles. Quotes in an attribute may be escaped. */
const IN_STYLE = new RegExp(
  String.raw`(\burl\(\s*)("|'|&quot;|&#39;|&#x27;|)(${PUBLIC}[^"'<>()&\s]{1,1024})`,
  'gi',
);

export interface PublicFile {
  readonly bytes: Buffer;
  readonly type: string;
}

/** Resolves with a file of a workspace; undefined when the file is missing, cannot be read, or has more than `maxBytes`. */
export type ReadPublicFile = (path: string, maxBytes: number) => Promise<PublicFile | undefined>;

/** Resolves with outputs that contain the public files to which they refer. References to other files stay unchanged. */
export async function withPublicFiles(
  results: Results,
  workspaceId: WorkspaceId,
  read: ReadPublicFile,
): Promise<Results> {
  const references = await inSlices(referencesIn(results), workspaceId);
  const addresses = await dataAddresses(references, read);
  return addresses.size === 0 ? results : inSlices(replaced(results, addresses), workspaceId);
}

/** Returns the first references in the outputs, in steps of one output. */
function* referencesIn(results: Results): Generator<undefined, ReadonlySet<string>> {
  const found = new Set<string>();
  for (const { output } of Object.values(results)) {
    yield;
    withReferences(htmlOf(output) ?? '', (reference) => {
      if (found.size < MAX_FILES) found.add(reference);
      return undefined;
    });
    if (found.size >= MAX_FILES) return found;
  }
  return found;
}

/** Returns the outputs with addresses in place of references, in steps of one output. */
function* replaced(results: Results, addresses: ReadonlyMap<string, string>): Generator<undefined, Results> {
  const entries = new Map<string, Results[string]>();
  let room = MAX_INSERTED_CHARS;
  for (const [cellId, result] of Object.entries(results)) {
    yield;
    const html = htmlOf(result.output);
    if (html === undefined) {
      entries.set(cellId, result);
      continue;
    }
    const data = withReferences(html, (reference) => {
      const address = addresses.get(reference);
      if (address === undefined || address.length > room) return undefined;
      room -= address.length;
      return address;
    });
    entries.set(cellId, { ...result, output: { ...(result.output as CellOutput), data } });
  }
  return Object.fromEntries(entries);
}

/** Returns HTML in which addresses from `addressOf` replace references to public files. */
export function withReferences(html: string, addressOf: (reference: string) => string | undefined): string {
  const replace = (whole: string, _before: string, _quote: string, reference: string) => {
    const address = addressOf(reference);
    return address === undefined ? whole : whole.replace(reference, () => address);
  };
  return html
    .replace(REFERENCE, replace)
    .replace(PLACES, (place) =>
      place.replace(/^\s(?:image)?srcset=/i.test(place) ? IN_LIST : IN_STYLE, replace),
    );
}

/** Returns the HTML of an output that may refer to public files; undefined for other outputs. */
function htmlOf(output: unknown): string | undefined {
  const { mimetype, data } = Object(output) as Partial<CellOutput>;
  const isHtml = typeof data === 'string' && HTML_TYPES.has(mimetype ?? '');
  return isHtml && data.includes(`${PUBLIC_FOLDER}/`) ? data : undefined;
}

/** Resolves with the `data:` addresses of the existing files, by their references. */
async function dataAddresses(
  references: ReadonlySet<string>,
  read: ReadPublicFile,
): Promise<ReadonlyMap<string, string>> {
  const addresses = new Map<string, string>();
  let left = MAX_ALL_BYTES;
  for (const reference of references) {
    const path = pathOf(reference);
    const file = path === undefined ? undefined : await read(path, Math.min(MAX_FILE_BYTES, left));
    if (file === undefined) continue;
    left -= file.bytes.byteLength;
    addresses.set(reference, `data:${file.type};base64,${file.bytes.toString('base64')}`);
  }
  return addresses;
}

/** Returns the path of the file in the workspace; undefined for a reference that is not well encoded. */
function pathOf(reference: string): string | undefined {
  const [path = ''] = reference.replace(/^\.?\//, '').split(/[?#]/);
  try {
    return decodeURIComponent(path.replaceAll('&amp;', '&'));
  } catch {
    return undefined;
  }
}
