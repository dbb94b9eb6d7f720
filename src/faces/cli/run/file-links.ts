/**
 * This machine's memory of notebook files: the server and notebook of each file, and the state of both when they were last equal.
 * Without that state, nobody could tell which side has changed. The memory is in the user's state folder (`XDG_STATE_HOME`, or
 * `~/.local/state`), not next to the file, where it could get into a repository.
 */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { pid } from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';

/** The states of a file and its notebook when both were last equal. */
export interface FileLink {
  readonly notebookId: string;
  /** The state of the file, as `stateOfFile` returns it. */
  readonly file: string;
  /** The state of the notebook, as `stateOfNotebook` returns it. */
  readonly notebook: string;
  /** The code of the notebook's cells; absent when it is long. */
  readonly code?: string;
  /** Whether the last import turned `pip install` lines of cells into dependencies. If so, the next import does the same. */
  readonly install?: boolean;
}

/** A link as it is stored in its file. */
interface StoredLink extends FileLink {
  readonly path: string;
  readonly baseUrl: string;
  readonly workspaceId: string;
}

export interface FileLinksOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly baseUrl: string;
  readonly workspaceId: string;
}

/** The links of the files of one workspace. */
export class FileLinks {
  readonly #options: FileLinksOptions;
  readonly #folder: string;

  constructor(options: FileLinksOptions) {
    this.#options = options;
    this.#folder = join(stateFolder(options.env), 'notebook-files');
  }

  /** Returns the link of a file; undefined when the link is missing or cannot be read. */
  get(name: string): FileLink | undefined {
    const path = this.#pathOf(name);
    const link = readLink(this.#placeOf(path));
    return link?.path === path && this.#isOurs(link) ? link : undefined;
  }

  /** Stores a link. Returns undefined, or the reason why the link could not be stored. */
  set(name: string, link: FileLink): string | undefined {
    const { baseUrl, workspaceId } = this.#options;
    const path = this.#pathOf(name);
    const stored: StoredLink = { path, baseUrl, workspaceId, ...link };
    const place = this.#placeOf(path);
    const beside = `${place}.${pid}`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(beside, JSON.stringify(stored), { mode: 0o600 });
      renameSync(beside, place); // replaced in one step, because several commands may run for one file
      return undefined;
    } catch (error) {
      removeQuietly(beside);
      return error instanceof Error ? error.message : String(error);
    }
  }

  /**
   * Calls `work` while no other command of this machine does so for the same file. Otherwise commands that begin at the same
   * moment would each make a notebook. The lock of a dead command is ignored, and a living command is waited for at most half a
   * minute.
   */
  async exclusively<T>(name: string, work: () => Promise<T>): Promise<T> {
    const lock = `${this.#placeOf(this.#pathOf(name))}.lock`;
    for (let waited = 0; !this.#take(lock) && waited < MAX_WAIT_MS; waited += POLL_MS) await pause(POLL_MS);
    try {
      return await work();
    } finally {
      if (ownerOf(lock) === pid) removeQuietly(lock);
    }
  }

  /** Returns true when this command has the lock, and also when no lock can be made. */
  #take(lock: string): boolean {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(lock, String(pid), { flag: 'wx', mode: 0o600 });
      return true;
    } catch (error) {
      if (Object(error).code !== 'EEXIST') return true;
      const owner = ownerOf(lock);
      if (owner !== undefined && !isAlive(owner)) removeQuietly(lock);
      return false;
    }
  }

  /** Returns whether a notebook belongs to another file that still exists. */
  isOfOtherFile(notebookId: string, name: string): boolean {
    const own = this.#pathOf(name);
    const isOther = (link: StoredLink | undefined) =>
      link?.notebookId === notebookId && this.#isOurs(link) && link.path !== own && existsSync(link.path);
    return placesIn(this.#folder).some((place) => isOther(readLink(place)));
  }

  #isOurs({ baseUrl, workspaceId }: StoredLink): boolean {
    return baseUrl === this.#options.baseUrl && workspaceId === this.#options.workspaceId;
  }

  /** Returns the absolute path of a file, with symbolic links of its folder resolved, so that a file has one path. */
  #pathOf(name: string): string {
    const path = resolve(this.#options.cwd, name);
    try {
      return join(realpathSync(dirname(path)), basename(path));
    } catch {
      return path;
    }
  }

  #placeOf(path: string): string {
    const { baseUrl, workspaceId } = this.#options;
    const key = createHash('sha256')
      .update(JSON.stringify([baseUrl, workspaceId, path]))
      .digest('hex');
    return join(this.#folder, `${key}.json`);
  }
}

const POLL_MS = 50;
const MAX_WAIT_MS = 30_000;

/** Returns the process that holds a lock; undefined when no process does, or its id is not written yet. */
function ownerOf(lock: string): number | undefined {
  try {
    return Number.parseInt(readFileSync(lock, 'utf8'), 10) || undefined;
  } catch {
    return undefined;
  }
}

function isAlive(owner: number): boolean {
  try {
    process.kill(owner, 0);
    return true;
  } catch (error) {
    return Object(error).code === 'EPERM';
  }
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The path is not a folder, or belongs to another user. Then nothing can be stored there either.
  }
}

/** Returns the folder for the command line's memory. */
export function stateFolder(env: FileLinksOptions['env']): string {
  const home = env.HOME === undefined || env.HOME === '' ? homedir() : env.HOME;
  const state = env.XDG_STATE_HOME;
  return join(state === undefined || state === '' ? join(home, '.local', 'state') : state, 'troupe');
}

function placesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

function readLink(place: string): StoredLink | undefined {
  try {
    const link = Object(JSON.parse(readFileSync(place, 'utf8'))) as Partial<
      Record<keyof StoredLink, unknown>
    >;
    const { path, baseUrl, workspaceId, notebookId, file, notebook, code } = link;
    const words = [path, baseUrl, workspaceId, notebookId, file, notebook];
    const isWhole = words.every((word) => typeof word === 'string');
    return isWhole && (code === undefined || typeof code === 'string') ? (link as StoredLink) : undefined;
  } catch {
    return undefined; // the link is missing or damaged: the file is treated like one that was never pushed
  }
}
