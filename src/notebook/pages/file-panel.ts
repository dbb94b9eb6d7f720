/**
 * The panel for files of marimo's page. It shows and changes the files of the workspace, which are the working directory of its
 * notebooks. Paths of the page begin with a slash, which stands for the folder of the workspace.
 */

import { inSlices } from '#src/base/async/slices.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { encodeUtf8 } from '#src/base/text/utf8.ts';
import {
  asBoolean,
  asNumber,
  asOneOf,
  asText,
  orNull,
  textUpTo,
} from '#src/confined/processes/json-shape.ts';
import type { FileEntry } from '#src/contract/wire/files.ts';
import { listFiles } from '#src/workspace/files/file-list.ts';
import { parseFilePath } from '#src/workspace/files/file-path.ts';
import { searchFiles } from '#src/workspace/files/file-search.ts';
import { readUpTo } from '#src/workspace/files/read-up-to.ts';
import type { WorkspaceFiles } from '#src/workspace/files/workspace-files.ts';
import { outcomeOf, type PanelCall, type PanelOperation } from './panel.ts';

/** The files, and how their types are told. */
export interface FilePanel {
  readonly files: WorkspaceFiles;
  /** Returns the media type of a file with this name; undefined when it is not known. */
  readonly typeOf: (name: string) => string | undefined;
  /** The size of the largest file that requests may store. */
  readonly maxFileBytes: number;
}

/** A file or a folder that a page creates. */
export interface NewFile {
  /** The folder. */
  readonly path: unknown;
  readonly type: unknown;
  readonly name: unknown;
  /** The content of a file; undefined for an empty one. */
  readonly content: AsyncIterable<Uint8Array> | undefined;
}

/** How many entries of a folder the panel shows. */
const MAX_LISTED = 1000;
/** A larger file is not shown. The JSON of its content is written at once. */
const MAX_SHOWN_BYTES = 1024 * 1024;
const MAX_FOUND = 200;
const MAX_SEARCH_DEPTH = 20;
const asSearch = textUpTo(255);
/** Reads a path with the slashes around it. The paths of files have a lower limit of their own. */
const asPath = textUpTo(4096);
const ROOT = '/';

type Body = Readonly<Record<string, unknown>>;
type Operation = PanelOperation<FilePanel>;

/** The operations of the panel, by their path. Uploads are apart: see `createFile`. */
export const FILE_PANEL: ReadonlyMap<string, Operation> = new Map<string, Operation>([
  [
    'api/files/roots',
    {
      method: 'GET',
      access: 'view',
      handle: () => ({ roots: [{ path: ROOT, name: 'Files', isPrimary: true }] }),
    },
  ],
  ['api/files/list_files', { method: 'POST', access: 'view', handle: list }],
  ['api/files/file_details', { method: 'POST', access: 'view', handle: details }],
  ['api/files/search', { method: 'POST', access: 'view', handle: search }],
  ['api/files/update', { method: 'POST', access: 'edit', handle: update }],
  ['api/files/delete', { method: 'POST', access: 'edit', handle: remove }],
  ['api/files/move', { method: 'POST', access: 'edit', handle: move }],
  ['api/files/copy', { method: 'POST', access: 'edit', handle: copy }],
]);

async function list({ files }: FilePanel, { workspaceId, signal }: PanelCall, body: Body) {
  const folder = body.path == null ? '' : relative(body.path, 'path');
  const prefix = folder === '' ? '' : `${folder}/`;
  const { items } = await listFiles(files, workspaceId, { prefix, limit: MAX_LISTED }, signal);
  // Folders come first, and hidden entries last: those belong to programs, such as caches.
  const rank = ({ path, type }: FileEntry) =>
    (path.startsWith('.', prefix.length) ? 2 : 0) + (type === 'folder' ? 0 : 1);
  const sorted = items.toSorted((a, b) => rank(a) - rank(b));
  return { files: sorted.map(infoOf), root: ROOT + folder };
}

async function details({ files, typeOf }: FilePanel, { workspaceId }: PanelCall, body: Body) {
  const path = relative(body.path, 'path');
  const asked = orNull(body.maxBytes, asNumber, 'maxBytes') ?? MAX_SHOWN_BYTES;
  const entry = await files.entry(workspaceId, path);
  const file = infoOf(entry);
  const nothing = { file, contents: null, mimeType: null, isBase64: false, isTooLarge: false };
  if (entry.type === 'folder') return nothing;
  const bytes = await shownBytes(files, workspaceId, path, Math.min(asked, MAX_SHOWN_BYTES));
  const mimeType = typeOf(file.name) ?? null;
  if (bytes === undefined) return { ...nothing, mimeType, isTooLarge: true };
  const text = textOf(bytes);
  return {
    ...nothing,
    contents: text ?? bytes.toString('base64'),
    mimeType: text === undefined ? (mimeType ?? 'application/octet-stream') : mimeType,
    isBase64: text === undefined,
  };
}

/** Resolves with the bytes of a file; undefined when there are more than `maxBytes`. */
async function shownBytes(
  files: WorkspaceFiles,
  workspaceId: PanelCall['workspaceId'],
  path: string,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const { handle, size } = await files.open(workspaceId, path);
  try {
    if (size > maxBytes) return undefined;
    const bytes = await readUpTo(handle, size + 1);
    return bytes.byteLength > maxBytes ? undefined : bytes; // notebook code may write to it
  } finally {
    await handle.close();
  }
}

/** Returns the text that bytes are in UTF-8; undefined when the bytes are not UTF-8. */
function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

async function search({ files }: FilePanel, { workspaceId, signal }: PanelCall, body: Body) {
  const query = asSearch(body.query, 'query');
  const folder = body.path == null ? '' : relative(body.path, 'path');
  const number = (name: string, most: number) => {
    const value = orNull(body[name], asNumber, name) ?? most;
    return Math.min(Math.max(0, Math.trunc(value)), most);
  };
  const flag = (name: string) => orNull(body[name], asBoolean, name) ?? true;
  const limit = number('limit', MAX_FOUND);
  const depth = number('depth', MAX_SEARCH_DEPTH);
  const names = folder === '' ? [] : parseFilePath(folder);
  const found =
    query.trim() === '' || limit === 0
      ? []
      : await searchFiles(
          files,
          workspaceId,
          {
            names,
            text: query,
            depth: depth + 1, // marimo counts the folders below the first one
            limit,
            findsFiles: flag('includeFiles'),
            findsFolders: flag('includeDirectories'),
            readsHidden: flag('includeHidden'),
          },
          signal,
        );
  return { files: found.map(infoOf), query, totalFound: found.length };
}

function update({ files }: FilePanel, call: PanelCall, body: Body) {
  const path = relative(body.path, 'path');
  const contents = asText(body.contents, 'contents');
  return outcomeOf(async () => {
    const bytes = await inSlices(encodeUtf8(contents), call.workspaceId);
    const { entry } = await files.write(call.workspaceId, path, only(bytes), ({ etag }) => {
      if (etag === undefined) throw notFound();
    });
    call.note({ action: 'file.update', target: path, outcome: 'done' });
    return { info: infoOf(entry) };
  });
}

function remove({ files }: FilePanel, call: PanelCall, body: Body) {
  const path = relative(body.path, 'path');
  return outcomeOf(async () => {
    const entry = await files.entry(call.workspaceId, path);
    await files.delete(call.workspaceId, entry.path, () => {});
    call.note({ action: 'file.delete', target: entry.path, outcome: 'done' });
  });
}

function move({ files }: FilePanel, call: PanelCall, body: Body) {
  const from = relative(body.path, 'path');
  const to = relative(body.newPath, 'newPath');
  return outcomeOf(async () => {
    const entry = await files.move(call.workspaceId, from, to);
    call.note({ action: 'file.move', target: from, detail: to, outcome: 'done' });
    return { info: infoOf(entry) };
  });
}

function copy({ files, maxFileBytes }: FilePanel, call: PanelCall, body: Body) {
  const from = relative(body.path, 'path');
  const to = relative(body.newPath, 'newPath');
  return outcomeOf(async () => {
    const { type } = await files.entry(call.workspaceId, from);
    if (type === 'folder') throw new AppError('not_a_file', 'Only files can be copied here, and no folders.');
    const { signal } = call;
    const entry = await files.copy(call.workspaceId, from, to, { maxBytes: maxFileBytes, signal });
    call.note({ action: 'file.copy', target: from, detail: to, outcome: 'done' });
    return { info: infoOf(entry) };
  });
}

/** Opens a file for a download. Its holder closes it. Rejects as `WorkspaceFiles.open` does. */
export async function openFile({ files }: FilePanel, { workspaceId }: PanelCall, asked: string) {
  const path = relative(asked, 'path');
  return { name: path.slice(path.lastIndexOf('/') + 1), file: await files.open(workspaceId, path) };
}

/** Creates a file or a folder. Nothing is replaced. */
export function createFile({ files }: FilePanel, call: PanelCall, file: NewFile): Promise<unknown> {
  const folder = relative(file.path, 'path');
  const name = asPath(file.name, 'name');
  const type = asOneOf(file.type, ['file', 'directory', 'notebook'], 'type');
  return outcomeOf(async () => {
    if (type === 'notebook')
      throw new AppError('invalid_request', 'Notebooks are made in the list of notebooks.');
    if (name.includes('/')) throw new AppError('invalid_request', 'The name has a slash.');
    const path = folder === '' ? name : `${folder}/${name}`;
    const entry = await (type === 'directory'
      ? files.makeFolder(call.workspaceId, path)
      : newFile(files, call, path, file.content));
    call.note({ action: 'file.create', target: entry.path, outcome: 'done' });
    return { info: infoOf(entry) };
  });
}

async function newFile(
  files: WorkspaceFiles,
  { workspaceId }: PanelCall,
  path: string,
  content: AsyncIterable<Uint8Array> = only(new Uint8Array()),
): Promise<FileEntry> {
  const { entry } = await files.write(workspaceId, path, content, ({ isTaken }) => {
    if (isTaken) throw new AppError('not_a_file', 'There is something at this path already.');
  });
  return entry;
}

async function* only(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes;
}

/** Returns a path of the page as files of the workspace have it; empty for the folder of the workspace. */
function relative(value: unknown, where: string): string {
  const path = asPath(value, where)
    .replace(/^\/+/, '')
    .replace(/(?<!\/)\/+$/, ''); // the run is tried once, from its first slash
  return path === '.' ? '' : path;
}

/** Returns an entry as marimo's page has it. */
function infoOf({ path: written, type, bytes, updatedAt }: FileEntry) {
  const path = written.replace(/\/$/, '');
  return {
    id: ROOT + path,
    path: ROOT + path,
    name: path.slice(path.lastIndexOf('/') + 1),
    isDirectory: type === 'folder',
    // With true the page would offer to open the file as a notebook, but notebooks of Troupe are not files.
    isMarimoFile: false,
    lastModified: Date.parse(updatedAt) / 1000,
    size: bytes,
    children: [],
  };
}
