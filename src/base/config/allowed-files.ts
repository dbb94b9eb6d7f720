/**
 * The settings files that this user trusts. A settings file decides where tokens are sent and which programs are started, and a
 * folder that was cloned or unpacked may bring one. So commands obey the file of a folder only after `troupe config allow` was run
 * there, or a server was started there, and only until the file changes.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { pid } from 'node:process';
import { CONFIG_FILE, type FoundFile, readConfigFile } from './file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The most files that are remembered. The file that was allowed first is forgotten first. */
const MAX_FILES = 1000;

const ROOT_USER = 0;
/** The folder of the system's settings, into which nothing is unpacked. */
const SYSTEM_FOLDER = '/etc/';

/** Returns this user's folder for settings of the command line: `$XDG_CONFIG_HOME/troupe`, or `~/.config/troupe`. */
export function userFolder({ HOME, XDG_CONFIG_HOME }: Environment): string {
  const home = HOME === undefined || HOME === '' ? homedir() : HOME;
  const folder =
    XDG_CONFIG_HOME === undefined || XDG_CONFIG_HOME === '' ? join(home, '.config') : XDG_CONFIG_HOME;
  return join(folder, 'troupe');
}

/**
 * Returns the test whether a command obeys a settings file: the user has allowed it with its present content, or it is one that root
 * has put there. Files that root unpacks belong to root, too, so root itself obeys at once only a file below `/etc`.
 */
export function isObeyed(
  env: Environment,
  userId: number | undefined = process.getuid?.(),
): (file: FoundFile) => boolean {
  const isOfRoot = ({ ownerId, path }: FoundFile) =>
    ownerId === ROOT_USER && (userId !== ROOT_USER || path.startsWith(SYSTEM_FOLDER)) && !isInClone(path);
  return (file) => isOfRoot(file) || readAllowed(env).get(file.path) === digestOf(file);
}

/** Returns the path of the settings file in `directory` that commands ignore; undefined when they ignore none. */
export function ignoredFile(env: Environment, directory: string): string | undefined {
  const found = foundIn(directory);
  return found === undefined || isObeyed(env)(found) ? undefined : found.path;
}

/**
 * Makes commands obey the settings file in `directory` until it changes, or ignore it again. Returns its path; undefined when there
 * is none that only this user and root can write.
 */
export function allowFile(env: Environment, directory: string, isAllowed = true): string | undefined {
  const found = foundIn(directory);
  if (found === undefined) return undefined;
  const entries = [...readAllowed(env)].filter(([path]) => path !== found.path && existsSync(path));
  if (isAllowed) entries.push([found.path, digestOf(found)]);
  write(env, entries.slice(-MAX_FILES));
  return found.path;
}

function foundIn(directory: string): FoundFile | undefined {
  let found: FoundFile | undefined;
  readConfigFile(directory, () => {}, {
    obeys: (file) => {
      found = file;
      return false;
    },
  });
  return found;
}

function isInClone(path: string): boolean {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return true;
    if (folder === dirname(folder)) return false;
  }
}

function digestOf({ text }: FoundFile): string {
  return createHash('sha256').update(text).digest('hex');
}

const pathOfAllowed = (env: Environment) => join(userFolder(env), `allowed-${CONFIG_FILE}`);

function readAllowed(env: Environment): Map<string, string> {
  try {
    const entries: [string, unknown][] = Object.entries(
      Object(JSON.parse(readFileSync(pathOfAllowed(env), 'utf8'))),
    );
    return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
  } catch {
    return new Map(); // the file is missing or damaged: the user allows again
  }
}

function write(env: Environment, entries: readonly [string, string][]): void {
  const path = pathOfAllowed(env);
  const beside = `${path}.${pid}`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    writeFileSync(beside, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`, { mode: 0o600 });
    renameSync(beside, path);
  } finally {
    rmSync(beside, { force: true });
  }
}
