/**
 * Paths of files that commands read and write. A folder that was cloned or unpacked may hold links to the user's own files. If
 * commands followed links, a link `helper.py` to a private key would be uploaded, and a link `out` to `~/.ssh` would be written
 * to. So commands follow no links below the working directory or below a clone. Links above these folders, such as a linked home,
 * are the user's own and are followed.
 */
import {
  closeSync,
  constants,
  existsSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { CommandFailure, EXIT } from './exit-code.ts';

const { O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = constants;

/** Flags that open a file for reading, and refuse a link with `ELOOP`. */
export const READ_PLAIN = O_RDONLY | O_NOFOLLOW;

/**
 * Returns the absolute path of `name`, which need not exist. Throws `CommandFailure` with the link and its target when a part of
 * the path below `base` is a link. The default of `base` is the outermost clone around the file, or the working directory.
 */
export function plainPath(name: string, cwd: string, base?: string): string {
  const path = resolve(cwd, name);
  const folder = base ?? baseOf(path, cwd);
  if (folder === undefined) return path;
  let place = folder;
  for (const part of relative(folder, path).split(sep)) {
    place = join(place, part);
    if (isLink(place)) throw linkRefused(name, place);
  }
  return path;
}

/** Returns the content of a file whose path has no links. Throws like `plainPath`, or the system's error. */
export function readPlain(name: string, cwd: string): Buffer {
  const file = openSync(plainPath(name, cwd), READ_PLAIN);
  try {
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/** Writes a file whose path has no links. Throws like `plainPath`, or the system's error. */
export function writePlain(name: string, cwd: string, content: Uint8Array | string): void {
  const file = openSync(plainPath(name, cwd), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o666);
  try {
    writeFileSync(file, content);
  } finally {
    closeSync(file);
  }
}

/** Returns the folder below which links are not followed; undefined for a path outside of `cwd` and of every clone. */
function baseOf(path: string, cwd: string): string | undefined {
  const own = new Set(['/', homedir()]);
  let base = isBelow(path, cwd) && !own.has(cwd) ? cwd : undefined;
  for (let folder = dirname(path); folder !== dirname(folder); folder = dirname(folder))
    if (!own.has(folder) && existsSync(join(folder, '.git')) && (base === undefined || isBelow(base, folder)))
      base = folder;
  return base;
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false; // it does not exist yet, or the command will report why it cannot be reached
  }
}

function isBelow(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`);
}

function linkRefused(name: string, link: string): CommandFailure {
  const target = targetOf(link);
  return new CommandFailure(
    `${name}: ${link} is a link${target === undefined ? '' : ` to ${target}`}. Commands follow no links in this folder, because a clone may bring some. Name the file or folder itself.`,
    EXIT.usage,
  );
}

function targetOf(link: string): string | undefined {
  try {
    return realpathSync(link);
  } catch {
    return undefined; // the link leads nowhere
  }
}
