/**
 * The part of a backup that concerns kernel nodes: the list of enrolled nodes, and the authority that certifies them.
 * With another authority every node would need a new invitation. Its private key is sealed, so that a person who has
 * only a backup cannot join a node.
 */
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import type { CopiedFile } from './file-copy.ts';

/** The folder of these files, in a data directory and in a backup. */
export const NODES_FOLDER = 'nodes';
/** The names of these files in a backup. */
export const NODES_FILES = ['enrolled.json', 'authority.sealed'] as const;

/** Seals a text, so that only the keyring of the server opens it. Throws when the keyring cannot be read. */
export interface Sealing {
  /** Returns the id of the key that `seal` uses. */
  readonly keyId: () => string;
  readonly seal: (text: string) => string;
}

export interface NodesCopyOptions {
  readonly dataDir: string;
  /** The backup or the increment. */
  readonly to: string;
  readonly sealing: Sealing | undefined;
  /** The files that the chain has already, each with the directory of the backup or increment that has its content. */
  readonly known?: ReadonlyMap<string, CopiedFile & { readonly from: string }>;
}

/** Copies the files that are new or have changed. Resolves with the entries of all of them, and with those that were left out. */
export async function copyNodes({ dataDir, to, sealing, known }: NodesCopyOptions): Promise<{
  readonly files: readonly CopiedFile[];
  readonly skipped: readonly string[];
}> {
  const source = join(dataDir, NODES_FOLDER);
  const [list, authority] = NODES_FILES.map((name) => join('..', NODES_FOLDER, name)) as [string, string];
  const files: CopiedFile[] = [];
  const add = async (path: string, text: string, modifiedMs: number): Promise<void> => {
    await mkdir(join(to, NODES_FOLDER), { recursive: true, mode: 0o700 });
    await using file = await open(join(to, 'workspaces', path), 'wx', 0o600);
    await file.writeFile(text);
    await file.sync();
    files.push({ path, executable: false, modifiedMs, ...digestOf(text) });
  };
  const enrolled = read(join(source, 'enrolled.json'));
  if (enrolled !== undefined) {
    const before = known?.get(list);
    if (before?.sha256 === digestOf(enrolled.text).sha256) files.push(before);
    else await add(list, enrolled.text, enrolled.modifiedMs);
  }
  const key = read(join(source, 'authority.pem'));
  if (key === undefined) return { files, skipped: [] };
  if (sealing === undefined) return { files, skipped: [join('..', NODES_FOLDER, 'authority.pem')] };
  const before = known?.get(authority);
  const isSame =
    before?.modifiedMs === key.modifiedMs &&
    keyIdOf(join(before.from, 'workspaces', authority)) === sealing.keyId();
  if (isSame) files.push(before);
  else await add(authority, sealing.seal(key.text), key.modifiedMs);
  return { files, skipped: [] };
}

function read(path: string): { readonly text: string; readonly modifiedMs: number } | undefined {
  const status = statSync(path, { throwIfNoEntry: false });
  return status && { text: readFileSync(path, 'utf8'), modifiedMs: Math.floor(status.mtimeMs) };
}

function digestOf(text: string): { readonly bytes: number; readonly sha256: string } {
  return { bytes: Buffer.byteLength(text), sha256: createHash('sha256').update(text).digest('hex') };
}

/** Returns the id of the key with which a copy is sealed; undefined when that cannot be read. */
function keyIdOf(path: string): unknown {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as { readonly keyId?: unknown }).keyId;
  } catch {
    return undefined;
  }
}
