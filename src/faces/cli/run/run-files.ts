/** The files that `troupe run` uploads and downloads. */
import { statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { Client } from '#src/contract/client/client.ts';
import type { FileEntry } from '#src/contract/wire/files.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Run } from '#src/contract/wire/run.ts';
import type { Terminal } from '../terminal.ts';
import { type FetchedFile, filesIn } from './file-transfer.ts';
import { localImports } from './local-imports.ts';
import { fetchAll, filesNamed, sendAs, sendNamed } from './named-files.ts';

/** The files to store before a run and to fetch after it. */
export interface RunFiles {
  readonly client: Client;
  readonly cwd: string;
  /** The path of the notebook, if it is a file. */
  readonly file: string | undefined;
  /** Files to store in the workspace before the run: paths and patterns, optionally with `=` and a target. */
  readonly take: readonly string[];
  /** Whether to upload the modules next to the notebook that it imports. */
  readonly takeImports: boolean;
  /** Paths and patterns of the workspace that are copied here after the run, whether it succeeded or not. */
  readonly fetch: readonly string[];
}

/** Stores the files that the notebook needs in the workspace, and prints their names. */
export async function takeAlong(
  { client, cwd, file, take, takeImports }: RunFiles,
  notebook: Notebook,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const tell = (named: string, stored: readonly FileEntry[]) =>
    terminal.err(`stored ${named}${storedText(stored)}\n`);
  for (const named of take) tell(named, await sendNamed(client, cwd, named, { signal }));
  if (!takeImports) return;
  const folder = file === undefined ? cwd : dirname(resolve(cwd, file));
  const code = notebook.serialization.cells.map((cell) => cell.code).join('\n');
  // Modules are stored in the folder of the workspace, where imports of the notebook look for them.
  for (const path of localImports(code, folder)) tell(path, await sendModule(client, folder, path, signal));
}

/** Stores a module, or a package without its hidden files. Nobody imports hidden files, and a `.env` file may hold credentials. */
async function sendModule(
  client: Client,
  folder: string,
  path: string,
  signal: AbortSignal,
): Promise<FileEntry[]> {
  const source = join(folder, path);
  if (!statSync(source).isDirectory()) return sendAs(client, folder, path, path, { signal });
  const stored: FileEntry[] = [];
  for await (const name of filesIn(source)) {
    if (name.split('/').some((part) => part.startsWith('.'))) continue;
    const file = `${path}/${name}`;
    stored.push(...(await sendAs(client, folder, file, file, { signal })));
  }
  return stored;
}

/** File systems count time in steps of some milliseconds, and a file may be written as soon as its run has begun. */
const CLOCK_SLACK_MS = 1000;

/** The files that were fetched, and the requested ones that do not exist. */
export interface Fetched {
  readonly files: readonly FetchedFile[];
  readonly missing: readonly string[];
}

/** Copies files that the notebook has written to the same paths on this machine, and prints their names. */
export async function bringBack(
  { client, cwd, fetch }: RunFiles,
  { startedAt }: Run,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Fetched> {
  const files: FetchedFile[] = [];
  const missing: string[] = [];
  for (const named of fetch) {
    const entries = await filesNamed(client, named, { signal });
    if (entries.length === 0) missing.push(named);
    files.push(...(await fetchAll(client, entries, cwd, { signal })));
  }
  for (const { file, bytes, updatedAt } of files) {
    const isOld = startedAt !== null && Date.parse(updatedAt) + CLOCK_SLACK_MS < Date.parse(startedAt);
    const age = isOld ? `, not written by this run but at ${updatedAt}` : '';
    terminal.err(`fetched ${relative(cwd, file)} (${bytes} bytes${age})\n`);
  }
  return { files, missing };
}

function storedText(stored: readonly FileEntry[]): string {
  const bytes = stored.reduce((sum, { bytes }) => sum + (bytes ?? 0), 0);
  return ` (${stored.length === 1 ? '' : `${stored.length} files, `}${bytes} bytes)`;
}
