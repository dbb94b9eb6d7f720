/** Examples of workspaces, members, tokens and the audit. */
import type { AuditEntry } from '#src/contract/wire/audit.ts';
import type {
  AccessToken,
  CreatedAccessToken,
  Member,
  OwnAccount,
  Workspace,
  WorkspaceLimits,
} from '#src/contract/wire/identity.ts';
import { AT, COLLEAGUE, times, USER, WORKSPACE_ID } from './example-values.ts';

const workspace: Workspace = { id: WORKSPACE_ID, name: 'Research', createdAt: AT };
const member: Member = { userId: USER, role: 'owner', name: 'Ada', ...times };
const token: AccessToken = {
  id: 'tok_01k6gq0000hhhhhhhhhhhhhhhh',
  name: 'nightly',
  userId: USER,
  workspaceId: WORKSPACE_ID,
  scopes: ['workspaceRuntime:connect', 'datasource:read'],
  createdAt: AT,
  createdBy: USER,
  expiresAt: null,
};
const createdToken: CreatedAccessToken = { ...token, token: 'trp_example' };
const account: OwnAccount = {
  user: { id: USER },
  token: {
    id: token.id,
    name: token.name,
    workspaceId: WORKSPACE_ID,
    scopes: token.scopes,
    createdAt: AT,
    expiresAt: null,
  },
  workspaces: [{ id: WORKSPACE_ID, name: 'Research', role: 'owner' }],
  nextCursor: null,
};
const audited: AuditEntry = {
  id: 'aud_01k6gq0000jjjjjjjjjjjjjjjj',
  createdAt: AT,
  userId: USER,
  tokenId: token.id,
  action: 'member.add',
  target: COLLEAGUE,
  outcome: 'done',
  detail: 'editor',
  address: '192.0.2.7',
  requestId: 'req_0f3c1a9b2e4d1',
};

const limits: WorkspaceLimits = {
  workspaceId: WORKSPACE_ID,
  sessions: 20,
  runs: 40,
  streams: null,
  filesMb: 10_240,
  files: null,
  jobs: 10_000,
  sessionsPerUser: 4,
  runsPerUser: null,
  set: ['sessions', 'runs', 'sessionsPerUser'],
  updatedAt: AT,
  updatedBy: USER,
};

export const IDENTITY_EXAMPLES = {
  AccessToken: token,
  AuditEntry: audited,
  CreatedAccessToken: createdToken,
  Member: member,
  OwnAccount: account,
  Workspace: workspace,
  WorkspaceLimits: limits,
};
