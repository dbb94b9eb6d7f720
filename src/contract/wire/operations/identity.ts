import {
  AccessTokenSchema,
  CreatedAccessTokenSchema,
  MemberChangeSchema,
  MemberSchema,
  NewAccessTokenSchema,
  NewMemberSchema,
  NewWorkspaceLimitsSchema,
  NewWorkspaceSchema,
  OwnAccountSchema,
  WorkspaceLimitsSchema,
  WorkspaceSchema,
} from '../identity.ts';
import { PageQuery, pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';
import { ETAG_HEADER, NOT_MODIFIED, READ_CONDITION, WRITE_CONDITIONS } from './parts.ts';

/** Workspaces, members and access tokens. */
export const IDENTITY_OPERATIONS = declareOperations({
  listAccessTokens: {
    query: PageQuery,
    responses: {
      200: { description: 'A page of tokens.', schema: pageSchema('AccessTokenPage', AccessTokenSchema) },
    },
  },
  createAccessToken: {
    body: NewAccessTokenSchema,
    responses: {
      201: {
        description: 'The token was created.',
        schema: CreatedAccessTokenSchema,
        headers: { location: 'The path of the token.' },
      },
    },
  },
  getAccessToken: {
    responses: { 200: { description: 'The token, without its secret part.', schema: AccessTokenSchema } },
  },
  revokeAccessToken: {
    responses: { 204: { description: 'The token was revoked.' } },
  },
  getMe: {
    query: PageQuery,
    responses: { 200: { description: 'The caller.', schema: OwnAccountSchema } },
  },
  listMembers: {
    query: PageQuery,
    responses: {
      200: { description: 'A page of members.', schema: pageSchema('MemberPage', MemberSchema) },
    },
  },
  addMember: {
    body: NewMemberSchema,
    responses: {
      201: {
        description: 'The member was added.',
        schema: MemberSchema,
        headers: { location: 'The path of the member.', ...ETAG_HEADER },
      },
    },
  },
  getMember: {
    headers: READ_CONDITION,
    responses: {
      200: { description: 'The member.', schema: MemberSchema, headers: ETAG_HEADER },
      304: NOT_MODIFIED,
    },
  },
  changeMember: {
    headers: WRITE_CONDITIONS,
    body: MemberChangeSchema,
    responses: { 200: { description: 'The changed member.', schema: MemberSchema, headers: ETAG_HEADER } },
  },
  removeMember: {
    headers: WRITE_CONDITIONS,
    responses: { 204: { description: 'The member was removed.' } },
  },
  listWorkspaces: {
    query: PageQuery,
    responses: {
      200: { description: 'A page of workspaces.', schema: pageSchema('WorkspacePage', WorkspaceSchema) },
    },
  },
  createWorkspace: {
    body: NewWorkspaceSchema,
    responses: {
      201: {
        description: 'The workspace was created.',
        schema: WorkspaceSchema,
        headers: { location: 'The path of the workspace.' },
      },
    },
  },
  getWorkspace: {
    responses: { 200: { description: 'The workspace.', schema: WorkspaceSchema } },
  },
  deleteWorkspace: {
    responses: { 204: { description: 'The workspace was deleted.' } },
  },
  getWorkspaceLimits: {
    responses: { 200: { description: 'The limits of the workspace.', schema: WorkspaceLimitsSchema } },
  },
  setWorkspaceLimits: {
    body: NewWorkspaceLimitsSchema,
    responses: {
      200: { description: 'The limits of the workspace after the change.', schema: WorkspaceLimitsSchema },
    },
  },
});
