/**
 * The kinds of value that a setting can have. Each kind parses text, and states for error messages
 * the value that it expects.
 */
import { isIP } from 'node:net';
import { homedir } from 'node:os';
import { isAbsolute, resolve } from 'node:path';
import { Secret } from '../caller/secret.ts';
import { usableProcessors } from '../os/processors.ts';

/** The folders for reading settings: relative paths start at `cwd`; `packageRoot` is the directory of the installation. */
export interface SettingsBase {
  readonly cwd: string;
  readonly packageRoot: string;
}

/** One kind of value. */
export interface Kind<T> {
  /** Completes the error message "<name> must be …". */
  readonly expectation: string;
  /**
   * Returns the value, or `undefined` when the text is not of this kind. Only a kind of list gets
   * an empty text.
   */
  readonly parse: (text: string, base: SettingsBase) => T | undefined;
}

const BOOLEANS = new Map([
  ['true', true],
  ['1', true],
  ['on', true],
  ['yes', true],
  ['false', false],
  ['0', false],
  ['off', false],
  ['no', false],
]);

/** A switch. */
export const boolean: Kind<boolean> = {
  expectation: 'true or false',
  parse: (text) => BOOLEANS.get(text.toLowerCase()),
};

/** Returns the kind of a whole number in this range. */
export function integer(least: number, most: number): Kind<number> {
  return {
    expectation: `a whole number from ${least} to ${most}`,
    parse: (text) => (/^\d{1,15}$/.test(text) ? within(Number(text), least, most) : undefined),
  };
}

const MAX_WORKERS = 64;
const MAX_AUTOMATIC_WORKERS = 8;

/** A number of worker processes; `auto` chooses the number for this machine. */
export const workers: Kind<number> = {
  expectation: `auto, or a whole number from 1 to ${MAX_WORKERS}`,
  parse: (text, base) =>
    text === 'auto'
      ? automaticWorkers(process.platform, usableProcessors())
      : integer(1, MAX_WORKERS).parse(text, base),
};

/**
 * Returns how many workers fit a machine. Kernels need the other processors. On systems other than
 * Linux, workers cannot share a port.
 */
export function automaticWorkers(platform: NodeJS.Platform, processors: number): number {
  if (platform !== 'linux' || processors <= 2) return 1;
  return Math.min(MAX_AUTOMATIC_WORKERS, Math.max(1, Math.floor(processors / 2)));
}

/** Returns the kind of a time in seconds, with fractions. */
export function seconds(least: number, most: number): Kind<number> {
  return {
    expectation: `a number of seconds from ${least} to ${most}`,
    parse: (text) => (/^\d{1,9}(\.\d{1,6})?$/.test(text) ? within(Number(text), least, most) : undefined),
  };
}

function within(value: number, least: number, most: number): number | undefined {
  return value >= least && value <= most ? value : undefined;
}

/** Returns the kind of a word from a fixed list. */
export function choice<const T extends string>(...values: readonly T[]): Kind<T> {
  return {
    expectation: `one of ${values.join(', ')}`,
    parse: (text) => values.find((value) => value === text),
  };
}

/** Returns the kind of a text that matches the expression. */
export function pattern(expression: RegExp, expectation: string): Kind<string> {
  return { expectation, parse: (text) => (expression.test(text) ? text : undefined) };
}

/** Returns the kind of a secret that matches the expression. Its value is wrapped. */
export function secret(expression: RegExp, expectation: string): Kind<Secret> {
  return { expectation, parse: (text) => (expression.test(text) ? new Secret(text) : undefined) };
}

/** An absolute path. `~/` stands for the home directory; a relative path starts at the working directory. */
export const path: Kind<string> = { expectation: 'a path', parse: resolvePath };

/** The longest path that fits into the address of a unix socket (unix(7)). */
const MAX_SOCKET_PATH_BYTES = 107;

/** The path of a unix socket. */
export const socketPath: Kind<string> = {
  expectation: `a path of at most ${MAX_SOCKET_PATH_BYTES} bytes`,
  parse: (text, base) => {
    const found = resolvePath(text, base);
    return found !== undefined && Buffer.byteLength(found) <= MAX_SOCKET_PATH_BYTES ? found : undefined;
  },
};

/** Like `path`, but a bare name such as `python3` is kept, to be looked up in `PATH`. */
export const program: Kind<string> = {
  expectation: 'a path or the name of a program',
  parse: (text, base) => (text.includes('/') ? resolvePath(text, base) : noNul(text)),
};

/** A list of paths separated by commas; `none` is the empty list. */
export const paths: Kind<readonly string[]> = {
  expectation: 'paths separated by commas, or none',
  parse: (text, base) => {
    if (text === '' || text === 'none') return Object.freeze([]);
    const entries = text.split(',').map((entry) => resolvePath(entry.trim(), base));
    return entries.every((entry) => entry !== undefined) ? Object.freeze(entries) : undefined;
  },
};

function resolvePath(text: string, base: SettingsBase): string | undefined {
  const expanded = text.startsWith('~/') ? resolve(homedir(), text.slice(2)) : text;
  return noNul(isAbsolute(expanded) ? resolve(expanded) : resolve(base.cwd, expanded));
}

function noNul(text: string): string | undefined {
  return text.includes('\0') ? undefined : text;
}

/** An http or https URL without credentials, query and fragment. Slashes at its end are removed. */
export const httpUrl: Kind<string> = {
  expectation: 'an http or https address without credentials, query or fragment',
  parse: (text) => {
    if (!URL.canParse(text)) return undefined;
    const url = new URL(text);
    const plain = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
    return plain && /^https?:$/.test(url.protocol) ? url.href.replace(/(?<!\/)\/+$/, '') : undefined;
  },
};

/** `none`, `join`, or `ray:` with the address of the Jobs API of a cluster. */
export const kernelNodes: Kind<'none' | 'join' | `ray:${string}`> = {
  expectation: 'none, join, or ray: with an address, such as ray:http://head:8265',
  parse: (text, base) => {
    if (text === 'none' || text === 'join') return text;
    const url = text.startsWith('ray:') ? httpUrl.parse(text.slice('ray:'.length), base) : undefined;
    return url === undefined ? undefined : `ray:${url}`;
  },
};

const HOST_NAME =
  /^(?=.{1,253}$)([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;

function isHost(text: string): boolean {
  // Digits and dots alone are a mistyped address, not a name.
  return isIP(text) !== 0 || (HOST_NAME.test(text) && !/^[\d.]+$/.test(text));
}

function isNetwork(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= most;
}

/** A host name or an IP address. */
export const host: Kind<string> = {
  expectation: 'a host name or an IP address',
  parse: (text) => (isHost(text) ? text : undefined),
};

/**
 * The destination of the audit log: `tcp://host:port`, `udp://host:port`, `unix:path`, or the path
 * of a file.
 */
export const auditTarget: Kind<string> = {
  expectation: 'the path of a file, tcp://host:port, udp://host:port or unix:path',
  parse: (text, base) => {
    const [, protocol, name = '', digits = ''] = /^(tcp|udp):\/\/(.+):(\d{1,5})$/.exec(text) ?? [];
    if (protocol === 'tcp' || protocol === 'udp') {
      const [address, port] = [name.replace(/^\[(.*)\]$/, '$1'), Number(digits)];
      return isHost(address) && port > 0 && port < 65_536 ? text : undefined;
    }
    if (/^\w+:\/\//.test(text)) return undefined;
    if (!text.startsWith('unix:')) return resolvePath(text, base);
    const path = resolvePath(text.slice('unix:'.length), base);
    return path === undefined ? undefined : `unix:${path}`;
  },
};

/** A list of IP addresses and networks separated by commas; `none` is the empty list. */
export const addresses: Kind<readonly string[]> = {
  expectation: 'IP addresses or networks such as 10.0.0.0/8, separated by commas, or none',
  parse: (text) => {
    if (text === 'none') return Object.freeze([]);
    const entries = text.split(',').map((entry) => entry.trim());
    return entries.every((entry) => isIP(entry) !== 0 || isNetwork(entry))
      ? Object.freeze(entries)
      : undefined;
  },
};

/** A list of web origins separated by commas; `none` is the empty list. */
export const origins: Kind<readonly string[]> = {
  expectation: 'origins such as https://app.example, separated by commas, or none',
  parse: (text) => {
    if (text === 'none') return Object.freeze([]);
    const entries = text.split(',').map((entry) => entry.trim());
    const isOrigin = (entry: string) => /^https?:/.test(entry) && originOf(entry) === entry;
    return entries.every(isOrigin) ? Object.freeze(entries) : undefined;
  },
};

const MAX_PAGE_HOSTS = 50;

/**
 * A list of origins that the pages of notebooks may load from, separated by commas; `none` is the empty list. They become part of a
 * content security policy, so a host has only the characters of names. `*.` at its beginning stands for the names below it.
 */
export const pageHosts: Kind<readonly string[]> = {
  expectation: `at most ${MAX_PAGE_HOSTS} origins such as https://tiles.example or https://*.tiles.example, separated by commas, or none`,
  parse: (text) => {
    if (text === 'none') return Object.freeze([]);
    const entries = text.split(',').map((entry) => entry.trim());
    return entries.length <= MAX_PAGE_HOSTS && entries.every(isPageHost) ? Object.freeze(entries) : undefined;
  },
};

function isPageHost(entry: string): boolean {
  const plain = entry.replace(/^https:\/\/\*\.(?=[^.]+\.)/, 'https://');
  if (originOf(plain) !== plain) return false;
  const { protocol, hostname } = new URL(plain);
  const isHere = /^(localhost|127(\.\d{1,3}){3})$/.test(hostname);
  return isHost(hostname) && (protocol === 'https:' || (protocol === 'http:' && isHere));
}

function originOf(text: string): string | undefined {
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

/** A list of hosts and networks separated by commas; `none` is the empty list. */
export const targets: Kind<readonly string[]> = {
  expectation: 'host names, IP addresses or networks such as 10.0.0.0/8, separated by commas, or none',
  parse: (text) => {
    if (text === '' || text === 'none') return Object.freeze([]);
    const entries = text.split(',').map((entry) => entry.trim());
    return entries.every((entry) => isHost(entry) || isNetwork(entry)) ? Object.freeze(entries) : undefined;
  },
};

/** The issuer of an identity provider, unchanged, because a slash at its end may belong to it. */
export const issuer: Kind<string> = {
  expectation: 'an https address without credentials, query or fragment, or an http one of this machine',
  parse: (text) => {
    if (httpUrl.parse(text, { cwd: '/', packageRoot: '/' }) === undefined) return undefined;
    const { protocol, hostname } = new URL(text);
    const isHere = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
    return protocol === 'https:' || isHere ? text : undefined;
  },
};

const GROUP_ROLE = /^([^\s=,]([^=,]{0,198}[^\s=,])?)\s*=\s*([A-Za-z0-9_-]{1,64}):(owner|editor|viewer)$/;
const MAX_GROUP_ROLES = 1000;

/** A table of groups, with the workspace and the role of each, as `group=workspace:role`; `none` is the empty table. */
export const groupRoles: Kind<readonly string[]> = {
  expectation: 'a list such as data-team=ws_1:editor, admins=ws_1:owner, or none',
  parse: (text) => {
    if (text === 'none') return Object.freeze([]);
    const rows = text.split(',').map((row) => row.trim());
    return rows.length <= MAX_GROUP_ROLES && rows.every((row) => GROUP_ROLE.test(row))
      ? Object.freeze(rows)
      : undefined;
  },
};

/** Parameters that the security of a sign-in depends on, or that follow from other settings. */
const OWN_PARAMETERS =
  /^(client_id|redirect_uri|response_type|response_mode|scope|state|nonce|code_challenge|code_challenge_method|request|request_uri)$/;

/**
 * Parameters for the address of an identity provider, written like a query; `none` for an empty
 * list.
 */
export const signInParameters: Kind<string> = {
  expectation:
    'parameters such as prompt=consent&max_age=3600, none of which the server sets itself, or none',
  parse: (text) => {
    if (text === 'none') return '';
    const names = [...new URLSearchParams(text).keys()];
    const isQuery = /^[\x21\x23-\x7e]{1,1000}$/.test(text) && !text.startsWith('?');
    return isQuery && names.length > 0 && names.every((name) => name !== '' && !OWN_PARAMETERS.test(name))
      ? text
      : undefined;
  },
};
