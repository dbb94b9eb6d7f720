import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { eachItem, type Page, type PageOptions } from './paging.ts';

export type Role = 'owner' | 'editor' | 'viewer';

export type Scope = 'workspaceRuntime:connect' | 'datasource:read' | 'workspace:manage';

export interface Workspace {
  readonly id: string;
  readonly name: string;
  readonly createdAt: string;
}

export interface Member {
  readonly userId: string;
  readonly role: Role;
  readonly name: string | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface NewMember {
  readonly userId: string;
  readonly role: Role;
  readonly name?: string;
}

export interface AccessToken {
  readonly id: string;
  readonly name: string;
  readonly userId: string;
  /** The one workspace it is good for; null: every workspace of its user. */
  readonly workspaceId: string | null;
  readonly scopes: readonly Scope[];
  readonly createdAt: string;
  readonly createdBy: string;
  readonly expiresAt: string | null;
}

export interface NewAccessToken {
  readonly name: string;
  readonly scopes: readonly Scope[];
  /** A member, when an owner makes it for them; oneself when absent. */
  readonly userId?: string;
  readonly expiresAt?: string;
}

/** The calls that every collection at `root` has. */
function collection<Item>(connection: Connection, root: string) {
  const list = ({ after, limit, signal }: PageOptions = {}) =>
    connection.json<Page<Item>>({ method: 'GET', path: root, query: { after, limit }, signal });
  return {
    list,
    each: (options: PageOptions = {}) => eachItem(list, options),
    get: (id: string, options: RequestOptions = {}) =>
      connection.json<Item>({ method: 'GET', path: root + path`/${id}`, ...options }),
    create: <Created extends Item>(item: unknown, options: PostOptions) =>
      connection.json<Created>({ method: 'POST', path: root, body: item, ...options }),
    delete: (id: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: root + path`/${id}`, ...options }),
  };
}

/** Workspaces that the caller belongs to. */
export function workspaces(connection: Connection) {
  const { list, each, get, create } = collection<Workspace>(connection, '/api/v3/workspaces');
  return {
    list,
    each,
    get,
    /** The caller becomes its owner. */
    create: (workspace: { readonly name: string }, options: PostOptions = {}) =>
      create<Workspace>(workspace, options),
  };
}

/** Members of the workspace. */
export function members(connection: Connection) {
  const all = collection<Member>(connection, '/api/v3/members');
  return {
    ...all,
    create: (member: NewMember, options: PostOptions = {}) => all.create<Member>(member, options),
    update: (
      userId: string,
      change: { readonly role?: Role; readonly name?: string | null },
      options: RequestOptions = {},
    ) =>
      connection.json<Member>({
        method: 'PATCH',
        path: path`/api/v3/members/${userId}`,
        body: change,
        ...options,
      }),
  };
}

/** Access tokens. Deleting one revokes it at once. */
export function accessTokens(connection: Connection) {
  const all = collection<AccessToken>(connection, '/api/v3/access-tokens');
  return {
    ...all,
    /** The only answer that has the token itself. */
    create: (token: NewAccessToken, options: PostOptions = {}) =>
      all.create<AccessToken & { readonly token: string }>(token, options),
  };
}
