/**
 * The file that says which store makes its backups in a folder. Two servers that used one folder would delete each other's backups
 * as old ones, and a restore could pick the backup of the other one.
 */

import { constants } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { errorNameOf } from '#src/base/errors/system-error.ts';
import { cutText } from '#src/base/text/cut-text.ts';

/** Larger than the file that a server writes. */
const MAX_OWNER_BYTES = 16 * 1024;
/** A link could lead to any file, and opening a pipe would wait for a writer. */
const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** The name of the file in the folder of the backups. */
export const OWNER_FILE = '.troupe-owner';

/** The owner of a folder of backups. */
export interface BackupOwner {
  /** The id of the store. Its backups, and stores that were restored from them, have the same id. */
  readonly store: string;
  /** The path of the store at the time when it took the folder. It is only shown to people. */
  readonly dataDir: string;
  readonly host: string;
}

/**
 * Takes the folder for this store if no store has it. Resolves with the owner if that is another store, and with
 * undefined if it is this one, even when this store was moved. Rejects with the error of the system.
 */
export async function takeBackupFolder(
  directory: string,
  { store, dataDir }: Pick<BackupOwner, 'store' | 'dataDir'>,
): Promise<BackupOwner | undefined> {
  const path = join(directory, OWNER_FILE);
  const own: BackupOwner = { store, dataDir, host: hostname() };
  try {
    const file = await open(path, 'wx', 0o600); // when two servers start at once, only one of them makes the file
    try {
      await file.writeFile(`${JSON.stringify(own)}\n`);
      await file.sync();
    } catch (error) {
      await rm(path, { force: true }); // on a full disk the file would stay empty, and no store could use the folder
      throw error;
    } finally {
      await file.close();
    }
    return undefined;
  } catch (error) {
    if (errorNameOf(error) !== 'EEXIST') throw error;
  }
  const owner = ownerIn(await startOf(path));
  return owner.store === store ? undefined : owner;
}

/** Returns the first bytes of a file as text. A server's own file is not longer. */
async function startOf(path: string): Promise<string> {
  const file = await open(path, READ_FLAGS);
  try {
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(MAX_OWNER_BYTES) });
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/**
 * Returns the owner that the text names. For another text, which a power cut or another program has left, returns an
 * owner without a name.
 */
function ownerIn(text: string): BackupOwner {
  let value: Partial<Record<keyof BackupOwner, unknown>> = {};
  try {
    value = Object(JSON.parse(text)) as typeof value;
  } catch {
    // The owner is unknown.
  }
  const textOf = (member: unknown) => (typeof member === 'string' ? cutText(member, 0, 4096) : 'unknown');
  return { store: textOf(value.store), dataDir: textOf(value.dataDir), host: textOf(value.host) };
}
