import type {
  AccessToken,
  CreatedAccessToken,
  Member,
  MemberChange,
  NewAccessToken,
  NewMember,
  NewWorkspace,
  NewWorkspaceLimits,
  OwnAccount,
  Workspace,
  WorkspaceLimits,
} from '#src/wire/identity.ts';
import type { Page } from '#src/wire/shape.ts';
import {
  type Connection,
  type PostOptions,
  path,
  type ReadOptions,
  type RequestOptions,
  type WriteOptions,
} from './connection.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** Returns the calls that every collection at `root` has. */
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

/** Returns the call that says who the caller is. It needs no workspace. */
export function ownAccount(connection: Connection) {
  return ({ signal, ...query }: PageOptions = {}) =>
    connection.json<OwnAccount>({ method: 'GET', path: '/api/v3/me', query, signal });
}

/** Workspaces that the caller belongs to. */
export function workspaces(connection: Connection) {
  const { list, each, get, create, delete: remove } = collection<Workspace>(connection, '/api/v3/workspaces');
  return {
    list,
    each,
    get,
    /** Creates a workspace whose owner is the caller. */
    create: (workspace: NewWorkspace, options: PostOptions = {}) => create<Workspace>(workspace, options),
    /** Deletes a workspace for ever, with everything but its files. */
    delete: remove,
    /** Resolves with the limits of a workspace that are in force. */
    limits: (id: string, options: RequestOptions = {}) =>
      connection.json<WorkspaceLimits>({
        method: 'GET',
        path: path`/api/v3/workspaces/${id}/limits`,
        ...options,
      }),
    /** Sets the limits of a workspace; those that are absent become those of the server. Needs the scope `server:manage`. */
    setLimits: (id: string, limits: NewWorkspaceLimits, options: RequestOptions = {}) =>
      connection.json<WorkspaceLimits>({
        method: 'PUT',
        path: path`/api/v3/workspaces/${id}/limits`,
        body: limits,
        ...options,
      }),
  };
}

/** Members of the workspace. */
export function members(connection: Connection) {
  const all = collection<Member>(connection, '/api/v3/members');
  return {
    ...all,
    create: (member: NewMember, options: PostOptions = {}) => all.create<Member>(member, options),
    getTagged: (userId: string, options: ReadOptions = {}) =>
      connection.tagged<Member>({ method: 'GET', path: path`/api/v3/members/${userId}`, ...options }),
    delete: (userId: string, options: WriteOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: path`/api/v3/members/${userId}`, ...options }),
    update: (userId: string, change: MemberChange, options: WriteOptions = {}) =>
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
    /** Resolves with the token itself, which no other call returns. */
    create: (token: NewAccessToken, options: PostOptions = {}) =>
      all.create<CreatedAccessToken>(token, options),
  };
}
