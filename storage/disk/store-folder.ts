/** The place of the store in a data directory, and the checks before it is opened. */
import {
  accessSync,
  constants,
  existsSync,
  readFileSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { errorNameOf } from '#src/base/errors/system-error.ts';
import { flushFolder } from './flush-folder.ts';
import { StoreFile } from './store-file.ts';

/** LMDB's data file in the directory of a store. */
export const DATA_FILE = 'data.mdb';
/** The table of LMDB's readers, in the same folder. */
export const LOCK_FILE = 'lock.mdb';
/** Names the data file that a server used here last. In a copy of the directory the data file is another one. */
const INODE_FILE = 'place';
/** The store that a restore makes: it becomes the data file when everything is restored. */
export const RESTORING_FILE = 'data.restoring';

/** The two pages with which every store begins. */
const HEAD_BYTES = 2 * 4096;
/**
 * The two heads, and the one page of the first commit, which records the format. Every later commit makes the file
 * longer.
 */
const FIRST_COMMIT_BYTES = HEAD_BYTES + 4096;
/** More than LMDB needs for the first pages of a store and for its table of readers. */
const NEW_FILES_BYTES = 256 * 1024;

const RESTORE = 'Restore it from a backup (troupe restore).';

/** Throws `OperatorError` when the data directory `root` has no store. */
export function requireStoreIn(root: string): void {
  if (existsSync(join(root, 'store', DATA_FILE))) return;
  throw new OperatorError(
    `${root} has no store.`,
    'Set TROUPE_DATA_DIR to the data directory of the server.',
  );
}

/**
 * Returns whether a restore into the data directory `root` was interrupted, or is in progress.
 * Such a directory has nothing but the files of the restore.
 */
export function hasUnfinishedRestore(root: string): boolean {
  const store = join(root, 'store');
  return existsSync(join(store, RESTORING_FILE)) && !existsSync(join(store, DATA_FILE));
}

/** Throws `OperatorError` when a restore into the data directory `root` was interrupted. */
export function requireNoUnfinishedRestore(root: string): void {
  if (!hasUnfinishedRestore(root)) return;
  throw new OperatorError(
    `A restore into ${root} was interrupted, so it is incomplete.`,
    'Run troupe restore again, or empty the directory.',
  );
}

/**
 * Throws `OperatorError` when the store is missing although the directory has credentials or a keyring, which exist
 * only after a store was used. `root` is the data directory.
 */
export function requireExpectedStore(root: string, keyringFile: string): void {
  const store = join(root, 'store');
  if (existsSync(join(store, DATA_FILE))) return;
  const witness = witnessOf(root, keyringFile);
  if (witness === undefined) return;
  throw new OperatorError(
    `There is no store at ${store}, although ${witness} exists.`,
    'If a volume is not mounted, mount it; if the store was lost, restore it (troupe restore). To begin with an empty store, set TROUPE_NEW_STORE=true for one start.',
  );
}

/** Returns the name of a file that exists only next to a used store; undefined when there is none. */
function witnessOf(root: string, keyringFile: string): string | undefined {
  // A directory is no keyring, but the reader of the keyring reports that.
  const isThere = (path: string) => existsSync(path) && !statSync(path).isDirectory();
  return [join(root, 'bootstrap.json'), keyringFile].find(isThere);
}

/**
 * Returns whether a first start has begun to make the store and was killed, lost its power, or found the disk full. Nothing was
 * ever in such a store. A power cut may leave a file that is long enough for the first commit and has no head: LMDB flushes both
 * at once. `root` is the data directory.
 */
export function isUnfinished(root: string, keyringFile: string): boolean {
  const path = join(root, 'store', DATA_FILE);
  const file = statSync(path, { throwIfNoEntry: false });
  if (file === undefined || !file.isFile() || file.size > FIRST_COMMIT_BYTES) return false;
  if (witnessOf(root, keyringFile) !== undefined) return false;
  return file.size < HEAD_BYTES || !hasHead(path);
}

function hasHead(path: string): boolean {
  using file = StoreFile.open(path);
  return file.meta() !== undefined;
}

/**
 * Throws `OperatorError` when LMDB would make a file at `path` (the directory of a store) on a full disk. LMDB writes to its
 * files through memory, and a page for which the disk has no room ends the process (SIGBUS).
 */
export function requireRoomForFiles(path: string): void {
  if ([DATA_FILE, LOCK_FILE].every((name) => existsSync(join(path, name))) || !isWritable(path)) return;
  const { bavail, bsize } = statfsSync(path);
  if (bavail * bsize >= NEW_FILES_BYTES) return;
  throw new OperatorError(
    `The store at ${path} cannot be opened: the disk is full.`,
    'Free some disk space.',
  );
}

/** Where nothing can be written LMDB makes no file. */
function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Throws `OperatorError` when there is no store at `path` (the directory), because LMDB would make one. */
export function requireStoreFile(path: string): void {
  try {
    statSync(join(path, DATA_FILE));
  } catch (error) {
    throw systemFailure(`The store at ${path} cannot be opened`, error);
  }
}

/**
 * Throws `OperatorError` when the files of the store at `path` (the directory) cannot be mapped into memory safely: they are
 * empty, not a store, cut short, or cannot be read. A store that does not exist yet is fine. Reads two pages. It reads all pages
 * only when the file is shorter than it could be, or is a copy of a store in use: a copy made while a server wrote has pages of
 * different times.
 */
export function requireSoundFile(path: string): void {
  const file = join(path, DATA_FILE);
  let data: StoreFile;
  try {
    if (!statSync(file).isFile()) throw new OperatorError(`The store ${file} is not a file.`, RESTORE);
    data = StoreFile.open(file);
  } catch (error) {
    if (errorNameOf(error) === 'ENOENT') return;
    if (error instanceof OperatorError) throw error;
    throw systemFailure(`The store ${file} cannot be read`, error);
  }
  using opened = data;
  const damage = damageOf(opened, isCopy(path));
  if (damage !== undefined) throw new OperatorError(`The store ${file} is damaged: ${damage}.`, RESTORE);
}

/**
 * Flushes the names of the new data file and of its folder `path`, so that a power cut does not lose the file, and stores the
 * file's inode for `requireSoundFile`. Throws the error of the system.
 */
export function settleDataFile(path: string): void {
  if (isCopy(path) === false) return;
  // LMDB flushes the file, not its name.
  flushFolder(path);
  flushFolder(dirname(path));
  try {
    writeFileSync(join(path, INODE_FILE), inodeOf(path), { mode: 0o600 });
  } catch {
    // On a full disk the inode cannot be stored. The next start then checks all pages again, or none.
  }
}

/**
 * Returns whether the data file differs from the one that a server has noted; undefined when none
 * was noted.
 */
function isCopy(path: string): boolean | undefined {
  try {
    return readFileSync(join(path, INODE_FILE), 'utf8') !== inodeOf(path);
  } catch {
    return undefined;
  }
}

function inodeOf(path: string): string {
  return String(statSync(join(path, DATA_FILE)).ino);
}

function damageOf(file: StoreFile, isCopied: boolean | undefined): string | undefined {
  if (file.sizeBytes === 0) return 'the file is empty';
  if (file.meta() === undefined) return 'its head is not that of a store';
  if (file.isComplete() && isCopied !== true) return undefined;
  const [damage] = file.walk().damage;
  if (damage === undefined || isCopied !== true) return damage;
  return `it is a copy that was made while a server wrote it, or it was damaged since (${damage})`;
}
