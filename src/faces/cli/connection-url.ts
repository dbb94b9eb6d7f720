/**
 * Turns the URL of a database, as drivers and hosting services show it, into a connection. The password is not part of the URL,
 * because other users can read the arguments of a command.
 */
import type { DatasourceConnection } from '#src/contract/wire/datasource.ts';
import { CommandFailure, EXIT } from './exit-code.ts';

/** The parts of the JSON Schema of one member of a connection that are used here. */
export interface UrlMember {
  readonly title?: string;
  readonly type?: string;
  readonly const?: unknown;
  readonly writeOnly?: boolean;
  readonly examples?: readonly unknown[];
}

/** The parts of the JSON Schema of one kind of connection that are used here. */
export interface KindSchema {
  readonly properties: Readonly<Record<string, UrlMember>>;
  readonly required: readonly string[];
}

/** A member that the connection needs and the URL does not have. */
export interface MissingMember {
  readonly member: string;
  readonly title: string;
  readonly isSecret: boolean;
  /** The usual value, for members that have one. */
  readonly usual: string | undefined;
}

/** The kind of connection for each scheme of URLs. Kinds that use HTTP have no schemes of their own. */
const KINDS: Readonly<Record<string, string>> = {
  postgres: 'postgres',
  postgresql: 'postgres',
  mysql: 'mysql',
  mariadb: 'mariadb',
  redshift: 'redshift',
  mssql: 'mssql',
  sqlserver: 'mssql',
  sqlite: 'sqlite',
  duckdb: 'duckdb',
};

/** The members for which the schema's example is the usual value. */
const USUAL = new Set(['port', 'schema']);

/** Returns whether an argument is a URL. Otherwise it is the name of a file. */
export function isConnectionUrl(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
}

/** The connection that a URL describes, while it is being completed. */
export class UrlConnection {
  readonly #kind: string;
  readonly #schema: KindSchema;
  readonly #values = new Map<string, string>();
  /** The URL itself, for kinds that keep it. */
  readonly #url: URL;

  /**
   * `document` is the JSON Schema of all connections, from the server. Throws `CommandFailure` for a URL that cannot be used. The
   * message repeats only the scheme of the URL and the names of its parameters.
   */
  constructor(text: string, document: unknown) {
    // SQLAlchemy names the driver, too: mysql+pymysql.
    const [scheme = ''] = text.slice(0, text.indexOf(':')).toLowerCase().split('+', 1);
    const kind = Object.hasOwn(KINDS, scheme) ? KINDS[scheme] : undefined;
    const schema = kind === undefined ? undefined : schemaOf(document, kind);
    if (kind === undefined || schema === undefined)
      throw wrong(
        `A URL with ${scheme}:// is not understood. Use one of ${Object.keys(KINDS).join(', ')}, or give the connection as JSON: ` +
          'troupe datasources schema prints its members.',
      );
    const rest = text.slice(text.indexOf('://'));
    if (!URL.canParse(`${scheme}${rest}`)) throw wrong('This is not a valid URL.');
    const url = new URL(`${scheme}${rest}`);
    if (url.password !== '')
      throw wrong(
        'Leave the password out of the URL, because other users can read the arguments of a command. The command asks for it, or ' +
          'reads it from standard input.',
      );
    this.#kind = kind;
    this.#schema = schema;
    this.#url = url;
    this.#take();
  }

  /** The members that are still missing, in the order of the schema. */
  get missing(): readonly MissingMember[] {
    const { properties } = this.#schema;
    const names = this.#keepsUrl ? ['user', 'password', 'database'] : [];
    const needed = [
      ...names,
      ...this.#schema.required.filter((name) => name !== 'kind' && name !== URL_MEMBER),
    ];
    return needed
      .filter((name) => !this.#values.has(name))
      .map((member) => {
        const { title = TITLES[member] ?? member, writeOnly, examples } = properties[member] ?? {};
        const [example] = examples ?? [];
        return {
          member,
          title,
          isSecret: writeOnly === true || member === 'password',
          usual: USUAL.has(member) && example !== undefined ? String(example) : undefined,
        };
      });
  }

  /** Sets a missing member. */
  set(member: string, value: string): void {
    this.#values.set(member, value);
  }

  /** Returns the connection. The server checks its members. */
  connection(): DatasourceConnection {
    const members: Record<string, unknown> = { kind: this.#kind };
    for (const [name, value] of this.#values)
      if (Object.hasOwn(this.#schema.properties, name))
        members[name] =
          this.#schema.properties[name]?.type === 'integer' && /^\d+$/.test(value) ? Number(value) : value;
    if (this.#keepsUrl) {
      const url = new URL(this.#url);
      url.username = encodeURIComponent(this.#values.get('user') ?? '');
      url.password = encodeURIComponent(this.#values.get('password') ?? '');
      url.pathname = `/${encodeURIComponent(this.#values.get('database') ?? '')}`;
      members[URL_MEMBER] = url.href;
    }
    return members as DatasourceConnection;
  }

  get #keepsUrl(): boolean {
    return Object.hasOwn(this.#schema.properties, URL_MEMBER);
  }

  #take(): void {
    const { properties } = this.#schema;
    const url = this.#url;
    const path = decoded(url.pathname).replace(/^\//, '');
    const isFile = Object.hasOwn(properties, 'path');
    const parts = isFile
      ? { path: decoded(url.hostname) + decoded(url.pathname) }
      : { host: decoded(url.hostname), port: url.port, database: path, user: decoded(url.username) };
    for (const [name, value] of Object.entries(parts)) if (value !== '') this.#values.set(name, value);
    if (isFile) this.#values.set('path', (this.#values.get('path') ?? '').replace(/^\//, ''));
    for (const [name, value] of [...url.searchParams]) {
      const member = Object.hasOwn(properties, name) ? properties[name] : undefined;
      if (member?.writeOnly === true)
        throw wrong(
          `Leave the parameter ${name} out of the URL, because it is a secret: give the connection as JSON.`,
        );
      if (member === undefined && this.#keepsUrl) continue; // parameters of the URL that the server keeps
      if (member === undefined)
        throw wrong(
          `The URL has the parameter ${name}, which connections of the kind ${this.#kind} do not have. They have ` +
            `${Object.keys(properties)
              .filter((one) => one !== 'kind' && properties[one]?.writeOnly !== true)
              .join(', ')}.`,
        );
      this.#values.set(name, value);
      url.searchParams.delete(name);
    }
  }
}

/** The member of kinds that keep the URL as a whole. */
const URL_MEMBER = 'connection_string';

const TITLES: Readonly<Record<string, string>> = { user: 'User', password: 'Password', database: 'Database' };

function schemaOf(document: unknown, kind: string): KindSchema | undefined {
  const { oneOf } = { oneOf: undefined, ...Object(document) } as { oneOf?: unknown };
  const kinds = Array.isArray(oneOf) ? (oneOf as KindSchema[]) : [];
  return kinds.find(({ properties }) => properties.kind?.const === kind);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrong(
      'A percent sign in the URL must begin an escape such as %2F; the sign itself is written %25.',
    );
  }
}

function wrong(message: string): CommandFailure {
  return new CommandFailure(message, EXIT.usage);
}
