/**
 * The access tokens that `troupe login` has received, by the address of their server. The file with the tokens is in the folder
 * for settings (`XDG_CONFIG_HOME`, or `~/.config`), and only the user can read it.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pid } from 'node:process';
import { userFolder } from '#src/base/config/allowed-files.ts';

/** The credentials for one server. */
export interface StoredLogin {
  readonly accessToken: string;
  readonly workspaceId: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Returns the credentials for a server; undefined when there are none. */
export function storedLogin(env: Env, baseUrl: string): StoredLogin | undefined {
  return readLogins(env).get(withoutSlash(baseUrl));
}

/** Returns the address of the user's last sign-in; undefined when there is none. */
export function lastServer(env: Env): string | undefined {
  return [...readLogins(env).keys()].at(-1);
}

/** Stores the credentials for a server, or forgets them. */
export function storeLogin(env: Env, baseUrl: string, login: StoredLogin | undefined): void {
  const logins = readLogins(env);
  logins.delete(withoutSlash(baseUrl)); // deleted first, so that the server of the last sign-in is the last in the map
  if (login !== undefined) logins.set(withoutSlash(baseUrl), login);
  const path = pathOfLogins(env);
  const beside = `${path}.${pid}`;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    writeFileSync(beside, `${JSON.stringify(Object.fromEntries(logins), null, 2)}\n`, { mode: 0o600 });
    renameSync(beside, path);
  } finally {
    rmSync(beside, { force: true });
  }
}

export function pathOfLogins(env: Env): string {
  return join(userFolder(env), 'credentials.json');
}

function withoutSlash(baseUrl: string): string {
  return baseUrl.replace(/(?<!\/)\/+$/, '');
}

function readLogins(env: Env): Map<string, StoredLogin> {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(pathOfLogins(env), 'utf8'));
  } catch {
    return new Map(); // the file is missing or damaged: the user signs in again
  }
  const isLogin = (value: unknown): value is StoredLogin => {
    const { accessToken, workspaceId }: Partial<Record<keyof StoredLogin, unknown>> = Object(value);
    return typeof accessToken === 'string' && typeof workspaceId === 'string';
  };
  const entries: [string, unknown][] = Object.entries(Object(content));
  return new Map(entries.filter((entry): entry is [string, StoredLogin] => isLogin(entry[1])));
}
