import type {
  MemberChange,
  NewAccessToken,
  NewMember,
  NewWorkspace,
  NewWorkspaceLimits,
} from '../wire/identity.ts';
import type { Connection, PostOptions, ReadOptions, RequestOptions, WriteOptions } from './connection.ts';
import { operation } from './operation.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** Returns the call for the caller's identity. It needs no workspace. */
export function ownAccount(connection: Connection) {
  return ({ signal, ...query }: PageOptions = {}) => connection.json(operation('getMe', { query, signal }));
}

/** Workspaces that the caller belongs to. */
export function workspaces(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions = {}) =>
    connection.json(operation('listWorkspaces', { query, signal }));
  return {
    list,
    each: (options: PageOptions = {}) => eachItem(list, options),
    get: (workspaceId: string, options: RequestOptions = {}) =>
      connection.json(operation('getWorkspace', { params: { workspaceId }, ...options })),
    /** Creates a workspace whose owner is the caller. */
    create: (workspace: NewWorkspace, options: PostOptions = {}) =>
      connection.json(operation('createWorkspace', { body: workspace, ...options })),
    /** Deletes a workspace for ever, with everything but its files. */
    delete: (workspaceId: string, options: RequestOptions = {}) =>
      connection.json(operation('deleteWorkspace', { params: { workspaceId }, ...options })),
    /** Resolves with the limits of a workspace that apply. */
    limits: (workspaceId: string, options: RequestOptions = {}) =>
      connection.json(operation('getWorkspaceLimits', { params: { workspaceId }, ...options })),
    /** Sets the limits of a workspace; an absent limit gets the value of the settings. Needs the scope `server:manage`. */
    setLimits: (workspaceId: string, limits: NewWorkspaceLimits, options: RequestOptions = {}) =>
      connection.json(operation('setWorkspaceLimits', { params: { workspaceId }, body: limits, ...options })),
  };
}

/** Members of the workspace. */
export function members(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions = {}) =>
    connection.json(operation('listMembers', { query, signal }));
  return {
    list,
    each: (options: PageOptions = {}) => eachItem(list, options),
    get: (userId: string, options: RequestOptions = {}) =>
      connection.json(operation('getMember', { params: { userId }, ...options })),
    getTagged: (userId: string, options: ReadOptions = {}) =>
      connection.tagged(operation('getMember', { params: { userId }, ...options })),
    create: (member: NewMember, options: PostOptions = {}) =>
      connection.json(operation('addMember', { body: member, ...options })),
    update: (userId: string, change: MemberChange, options: WriteOptions = {}) =>
      connection.json(operation('changeMember', { params: { userId }, body: change, ...options })),
    delete: (userId: string, options: WriteOptions = {}) =>
      connection.json(operation('removeMember', { params: { userId }, ...options })),
  };
}

/** Access tokens. Deleting one revokes it at once. */
export function accessTokens(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions = {}) =>
    connection.json(operation('listAccessTokens', { query, signal }));
  return {
    list,
    each: (options: PageOptions = {}) => eachItem(list, options),
    get: (tokenId: string, options: RequestOptions = {}) =>
      connection.json(operation('getAccessToken', { params: { tokenId }, ...options })),
    /** Resolves with the token itself, which no other call returns. */
    create: (token: NewAccessToken, options: PostOptions = {}) =>
      connection.json(operation('createAccessToken', { body: token, ...options })),
    delete: (tokenId: string, options: RequestOptions = {}) =>
      connection.json(operation('revokeAccessToken', { params: { tokenId }, ...options })),
  };
}
