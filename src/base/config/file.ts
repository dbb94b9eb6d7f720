import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { join } from 'node:path';

/** Name of the settings file, which is looked up in the working directory. */
export const CONFIG_FILE = 'troupe.config.json';

/** The largest settings file that is read. */
const MAX_BYTES = 1 << 20;

const GROUP_WRITES = 0o020;
const OTHERS_WRITE = 0o002;
const STICKY = 0o1000;

/** The settings file of a folder as it was read. */
export interface FoundFile {
  /** Without symbolic links. */
  readonly path: string;
  readonly text: string;
  /** The user id of its owner. */
  readonly ownerId: number;
}

/** How a settings file is read. */
export interface FileReading {
  /** The user who reads the file; the user of this process when absent. */
  readonly userId?: number | undefined;
  /** Whether the file is obeyed; always when absent. A file that is not obeyed has no members and no faults. */
  readonly obeys?: ((file: FoundFile) => boolean) | undefined;
}

/**
 * Returns the members of `troupe.config.json` in `directory` as text, like environment variables;
 * none when there is no file.
 *
 * Calls `complain` with one sentence for each member that cannot be a setting, for a file that
 * cannot be read, and for a file that a user other than `userId` could have written. The last
 * matters because the file decides where tokens are sent and which programs are started.
 */
export function readConfigFile(
  directory: string,
  complain: (problem: string) => void,
  { userId = process.getuid?.(), obeys = () => true }: FileReading = {},
): Map<string, string> {
  const members = new Map<string, string>();
  const found = findFile(directory, userId, complain);
  if (found === undefined || !obeys(found)) return members;
  const content = parse(found, complain);
  if (content === undefined) return members;
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    complain(`${CONFIG_FILE} must hold one JSON object.`);
    return members;
  }
  for (const [name, value] of Object.entries(content)) {
    const text = textOf(value);
    if (text === undefined)
      complain(`${name} in ${CONFIG_FILE} must be a string, a number, true, false or a list.`);
    else members.set(name, text);
  }
  return members;
}

function findFile(
  directory: string,
  userId: number | undefined,
  complain: (problem: string) => void,
): FoundFile | undefined {
  const path = join(directory, CONFIG_FILE);
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK); // a pipe would keep the command until somebody writes
    const stats = fstatSync(file);
    const stranger = userId === undefined ? undefined : whoElseWrites(directory, path, stats, userId);
    if (stranger !== undefined) {
      complain(
        `${path} is not obeyed, because ${stranger}. The file and its folder must belong to you or to root, and be writable by ` +
          'nobody else. Change that, or run the command in another folder.',
      );
      return undefined;
    }
    if (!stats.isFile()) throw new Error('it is not a file');
    return { path: realpathSync(path), text: readText(file), ownerId: stats.uid };
  } catch (error) {
    if (!isMissing(error)) complain(`${path} cannot be read: ${messageOf(error)}`);
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/** Returns the text of an open file. Throws when more than `MAX_BYTES` can be read, because the size of some files is wrong. */
function readText(file: number): string {
  const bytes = Buffer.allocUnsafe(MAX_BYTES + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < bytes.length; length += read)
    read = readSync(file, bytes, length, bytes.length - length, null);
  if (length > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
  return bytes.toString('utf8', 0, length);
}

function parse({ path, text }: FoundFile, complain: (problem: string) => void): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the file, which may hold secrets.
    complain(`${path} is not valid JSON.`);
    return undefined;
  }
}

/** Returns why another user could have written the file, as the end of a sentence; undefined when none could. */
function whoElseWrites(directory: string, path: string, file: Stats, userId: number): string | undefined {
  const isTheirs = ({ uid }: Stats) => uid !== userId && uid !== 0;
  // A group with the number of its user is that user's own.
  const isShared = ({ mode, gid }: Stats) =>
    (mode & OTHERS_WRITE) !== 0 || ((mode & GROUP_WRITES) !== 0 && gid !== userId && gid !== 0);
  const folder = statSync(directory);
  if (isTheirs(folder)) return 'its folder belongs to another user';
  // In a folder such as /tmp users can replace only files of their own.
  if (isShared(folder) && (folder.mode & STICKY) === 0) return 'other users can write to its folder';
  if (isTheirs(file) || isTheirs(lstatSync(path))) return 'it belongs to another user';
  return isShared(file) ? 'other users can write to it' : undefined;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'string')) return value.join(',');
  return undefined;
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
