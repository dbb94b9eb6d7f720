/**
 * Determines the server that a command uses, and its credentials. The `SERVICE_*` variables take precedence. For a server on this
 * machine, the rest comes from its settings and from the `bootstrap.json` of its first start; for other servers, from `troupe
 * login`.
 */
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { Secret } from '#src/base/caller/secret.ts';
import { isObeyed } from '#src/base/config/allowed-files.ts';
import { type Config, type LoadedConfig, loadConfig } from '#src/base/config/config.ts';
import { readServiceAccess } from '#src/base/config/service-access.ts';
import { canBeToken, NO_TOKEN } from '#src/contract/client/connection.ts';
import { lastServer, storedLogin } from './credentials.ts';
import { CommandFailure, EXIT } from './exit-code.ts';

/** A server and the credentials for it. */
export interface ServerAccess {
  readonly baseUrl: string;
  readonly accessToken: Secret;
  /** Undefined only for a command that needs no workspace. */
  readonly workspaceId: string | undefined;
}

/** The environment and the options from which access is found. */
export interface AccessRequest {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The workspace that the command line names. */
  readonly workspaceId?: string | undefined;
  /** Whether a workspace must be named; true when absent. */
  readonly needsWorkspace?: boolean | undefined;
}

/**
 * Returns the settings for a command. A settings file of this folder that the user has not allowed counts as missing, because it would
 * decide where tokens are sent. Throws `ConfigError`.
 */
export function commandConfig({ env, cwd }: Pick<AccessRequest, 'env' | 'cwd'>): LoadedConfig {
  return loadConfig(env, { cwd, obeys: isObeyed(env) });
}

/** Returns the server and the credentials. Throws `ConfigError`, or a `CommandFailure` that says how to sign in. */
export function resolveAccess(request: AccessRequest): ServerAccess {
  const access = findAccess(request);
  checkUrl(access.baseUrl);
  if (!canBeToken(access.accessToken.reveal()))
    throw new CommandFailure(`${NO_TOKEN} Look at SERVICE_ACCESS_TOKEN.`, EXIT.settings);
  return access;
}

/**
 * Throws `CommandFailure` for a text that is not the URL of a server. The message does not show the text, which may hold a
 * password.
 */
function checkUrl(baseUrl: string): void {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new CommandFailure('SERVICE_BASE_URL must be a URL such as http://127.0.0.1:8787.', EXIT.settings);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new CommandFailure(
      'SERVICE_BASE_URL must have no user, password, query or fragment: only scheme, host, port and path.',
      EXIT.settings,
    );
}

function findAccess({ env, cwd, workspaceId: asked, needsWorkspace = true }: AccessRequest): ServerAccess {
  const given = readServiceAccess(env);
  const givenWorkspace = asked ?? given.workspaceId;
  if (given.baseUrl !== undefined && given.accessToken !== undefined && givenWorkspace !== undefined) {
    return { baseUrl: given.baseUrl, accessToken: given.accessToken, workspaceId: givenWorkspace };
  }
  const { config } = commandConfig({ env, cwd });
  const baseUrl =
    given.baseUrl === undefined ? defaultUrl(env, config) : withoutLocalhost(given.baseUrl, config);
  const stored = storedLogin(env, baseUrl);
  // Credentials of this machine's server must never be sent to another server.
  const local = isThisServer(baseUrl, config) ? localCredentials(config) : undefined;
  const accessToken = given.accessToken ?? (stored && new Secret(stored.accessToken)) ?? local?.accessToken;
  const workspaceId = givenWorkspace ?? stored?.workspaceId ?? local?.workspaceId;
  if (accessToken === undefined) throw missing('token', baseUrl, config);
  if (workspaceId === undefined && needsWorkspace) throw missing('workspace', baseUrl, config);
  return { baseUrl, accessToken, workspaceId };
}

/**
 * Returns the address of the server that the command line names, or else the address that other commands use. Throws
 * `CommandFailure` for a text that is not the address of a server, and `ConfigError`.
 */
export function serverOf(
  { env, cwd }: Pick<AccessRequest, 'env' | 'cwd'>,
  server: string | undefined,
): string {
  const { config } = commandConfig({ env, cwd });
  const given = server ?? readServiceAccess(env).baseUrl;
  const baseUrl = given === undefined ? defaultUrl(env, config) : withoutLocalhost(given, config);
  checkUrl(baseUrl);
  return baseUrl.replace(/(?<!\/)\/+$/, '');
}

/** Returns the address of this machine's server, or of the last sign-in when no server was started from this directory. */
function defaultUrl(env: AccessRequest['env'], config: Config): string {
  if (localCredentials(config) !== undefined) return localUrl(config);
  return lastServer(env) ?? localUrl(config);
}

function missing(what: 'token' | 'workspace', baseUrl: string, config: Config): CommandFailure {
  const file = join(config.dataDir, 'bootstrap.json');
  const own = isThisServer(baseUrl, config)
    ? ` (A server writes a token to ${file} at its first start, but that file is missing or cannot be read.)`
    : '';
  const text =
    what === 'token'
      ? `You are not signed in to ${baseUrl}. Run: troupe login. In scripts, set SERVICE_ACCESS_TOKEN.${own}`
      : `No workspace of ${baseUrl} is chosen. Run: troupe login. In scripts, set SERVICE_WORKSPACE_ID.`;
  return new CommandFailure(text, EXIT.settings);
}

function localUrl({ host, port }: Config): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`;
}

/**
 * Returns `baseUrl`. If its host is `localhost`, returns the address at which the server of these settings listens: `localhost`
 * has a second address, at which another program may listen.
 */
function withoutLocalhost(baseUrl: string, config: Config): string {
  if (!URL.canParse(baseUrl) || !hasPortOf(baseUrl, config) || isIP(config.host) === 0) return baseUrl;
  const { hostname, pathname } = new URL(baseUrl);
  return hostname === 'localhost' ? `${localUrl(config)}${pathname.replace(/\/$/, '')}` : baseUrl;
}

/**
 * Returns whether a URL leads to this machine's server. Another program may use the same port at another address of the machine.
 */
function isThisServer(baseUrl: string, config: Config): boolean {
  if (!URL.canParse(baseUrl)) return false;
  const { hostname } = new URL(baseUrl);
  if (hostname === 'localhost') return true;
  if (hostname !== '[::1]' && !/^127\.\d+\.\d+\.\d+$/.test(hostname)) return false;
  const { host } = config;
  const own = new URL(localUrl(config)).hostname;
  const isOwn = host === '::' || (host === '0.0.0.0' ? hostname !== '[::1]' : hostname === own);
  return isOwn || !hasPortOf(baseUrl, config) || isIP(host) === 0;
}

function hasPortOf(baseUrl: string, { port }: Config): boolean {
  const url = new URL(baseUrl);
  return url.protocol === 'http:' && Number(url.port || 80) === port;
}

function localCredentials({
  bootstrapToken,
  bootstrapWorkspace,
  dataDir,
}: Config): Partial<ServerAccess> | undefined {
  if (bootstrapToken !== undefined && bootstrapWorkspace !== undefined) {
    return { accessToken: bootstrapToken, workspaceId: bootstrapWorkspace };
  }
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(join(dataDir, 'bootstrap.json'), 'utf8'));
  } catch {
    return undefined; // the file is missing or unreadable; the caller names the setting to use instead
  }
  const { accessToken, workspaceId } = { accessToken: undefined, workspaceId: undefined, ...Object(content) };
  if (typeof accessToken !== 'string' || typeof workspaceId !== 'string') return undefined;
  return { accessToken: new Secret(accessToken), workspaceId };
}
