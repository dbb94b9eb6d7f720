/**
 * Paths of files below the folder of a workspace: which paths are allowed, and how they are split.
 */
import { AppError } from '#src/base/errors/errors.ts';

const MAX_PATH_CHARACTERS = 1024;
const MAX_DEPTH = 32;
const MAX_NAME_BYTES = 255;

/** Names with this beginning belong to unfinished uploads. */
export const UPLOAD_PREFIX = '.troupe-upload-';
/** The folder of files that pages have sent to elements of notebooks: see `element-files.ts`. No request can name it. */
export const ELEMENT_FILES = '.troupe-element-files';

/**
 * Returns the names along the path to a file. Throws `invalid_request` unless the path is relative,
 * goes only down, and has names that every program can write: no control characters, no backslash,
 * no lone surrogate.
 */
export function parseFilePath(path: string): readonly [string, ...string[]] {
  const [first = '', ...rest] = path.split('/');
  const names: readonly [string, ...string[]] = [first, ...rest];
  if (path.length > MAX_PATH_CHARACTERS || names.length > MAX_DEPTH) throw invalidPath('is too long');
  if (!names.every(isFileName)) throw invalidPath('must be a relative path of plain names');
  return names;
}

/**
 * Splits a prefix: returns the folder, and the text with which names in this folder must begin. Throws as
 * `parseFilePath` does.
 */
export function parsePrefix(prefix: string): { readonly folder: readonly string[]; readonly start: string } {
  const end = prefix.lastIndexOf('/');
  const start = prefix.slice(end + 1);
  if (/[\\\p{Cc}\p{Surrogate}]/u.test(start) || start.length > MAX_NAME_BYTES)
    throw invalidPath('must be a relative path of plain names');
  return { folder: end < 0 ? [] : parseFilePath(prefix.slice(0, end)), start };
}

/** Returns whether a request can name this entry of a folder. */
export function isFileName(name: string): boolean {
  return (
    name !== '' &&
    name !== '.' &&
    name !== '..' &&
    name !== ELEMENT_FILES &&
    !name.startsWith(UPLOAD_PREFIX) &&
    !/[\\/\p{Cc}\p{Surrogate}]/u.test(name) &&
    Buffer.byteLength(name) <= MAX_NAME_BYTES
  );
}

function invalidPath(message: string): AppError {
  return new AppError('invalid_request', `The path ${message}.`, { errors: [{ path: 'path', message }] });
}
