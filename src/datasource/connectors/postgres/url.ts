/**
 * Parses PostgreSQL connection strings. The driver's own parser is not used, because it would also
 * take hosts, files and options from parameters and from its environment. Every parameter that is
 * not listed here is rejected.
 */
import { parseHost } from '#src/base/net/ip-address.ts';
import type { TlsMode } from '../../egress/tls-mode.ts';

/** The parts of a connection string. */
export interface PostgresAddress {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string;
  readonly tls: TlsMode | undefined;
  /** Whether TLS starts with the first byte, without a request for it (`sslnegotiation=direct`). */
  readonly directTls: boolean;
  readonly requireChannelBinding: boolean;
}

/** The parts, or an error message that does not repeat any of the text. */
export type ParsedPostgresUrl =
  | { readonly ok: true; readonly address: PostgresAddress }
  | { readonly ok: false; readonly message: string };

const MODES = new Map<string, TlsMode>([
  ['disable', 'disable'],
  ['allow', 'prefer'],
  ['prefer', 'prefer'],
  ['require', 'require'],
  ['verify-ca', 'verify-ca'],
  ['verify-full', 'verify-full'],
]);

/** The values that each supported parameter may have. */
const PARAMETERS: Readonly<Record<string, RegExp>> = {
  sslmode: new RegExp(`^(${[...MODES.keys()].join('|')})$`),
  sslnegotiation: /^(postgres|direct)$/,
  sslrootcert: /^system$/,
  channel_binding: /^(disable|prefer|require)$/,
  gssencmode: /^(disable|prefer)$/,
  target_session_attrs: /^any$/,
  connect_timeout: /^\d{1,6}$/,
  application_name: /^/,
};

/** Parses a connection string. */
export function parsePostgresUrl(text: string): ParsedPostgresUrl {
  const wrong = (message: string) => ({ ok: false, message }) as const;
  if (!/^postgres(ql)?:\/\//i.test(text)) {
    return wrong('must be a URL such as postgresql://user:password@host:5432/database');
  }
  const [, authority = ''] = /^\w+:\/\/([^/?#]*)/.exec(text) ?? [];
  if (authority.slice(authority.lastIndexOf('@') + 1).includes(',')) return wrong('must name one host only');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) {
    return wrong(
      'is not a valid URL; characters such as / ? # @ in user and password are written as %2F %3F %23 %40',
    );
  }
  const [user, password, database] = [url.username, url.password, url.pathname.slice(1)].map(decode);
  if (
    user === undefined ||
    password === undefined ||
    database === undefined ||
    hasControls(user + password + database)
  ) {
    return wrong('has a part that is not properly percent-encoded');
  }
  if (url.hash !== '') return wrong('must not have a # part');
  if (parseHost(url.hostname).kind === 'invalid')
    return wrong('must name a host; sockets and files are not supported');
  if (user === '') return wrong('must name a user');
  if (database === '') return wrong('must name a database');
  const given = [...url.searchParams];
  if (given.some(([name]) => !Object.hasOwn(PARAMETERS, name))) {
    return wrong(
      `has a parameter that is not supported; supported are ${Object.keys(PARAMETERS).join(', ')}`,
    );
  }
  if (new Set(given.map(([name]) => name)).size < given.length) return wrong('has a parameter twice');
  const mistaken = given.find(([name, value]) => !PARAMETERS[name]!.test(value));
  if (mistaken !== undefined) return wrong(`has a value for ${mistaken[0]} that is not supported`);
  const parameter = new Map(given);
  const mode = parameter.get('sslmode');
  const systemRoots = parameter.get('sslrootcert') === 'system';
  if (systemRoots && mode !== undefined && mode !== 'verify-full') {
    return wrong('has sslrootcert=system, which goes with sslmode=verify-full only');
  }
  const directTls = parameter.get('sslnegotiation') === 'direct';
  const tls = systemRoots || directTls ? (MODES.get(mode ?? '') ?? 'verify-full') : MODES.get(mode ?? '');
  if (directTls && (tls === 'disable' || tls === 'prefer')) {
    return wrong('has sslnegotiation=direct, which goes with sslmode=require or stronger');
  }
  const requireChannelBinding = parameter.get('channel_binding') === 'require';
  const port = url.port === '' ? 5432 : Number(url.port);
  if (port === 0) return wrong('must name a port from 1 to 65535');
  return {
    ok: true,
    address: { host: url.hostname, port, database, user, password, tls, directTls, requireChannelBinding },
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function hasControls(text: string): boolean {
  // On the wire a zero byte ends a text, and the bytes after it would be read as a parameter.
  return /\p{Cc}/u.test(text);
}
