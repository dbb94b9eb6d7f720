/** The resources whose calls are their operations, with nothing of their own. A new resource is a few lines here. */

import type { HookChange, NewHook } from '../wire/hook.ts';
import type {
  MemberChange,
  NewAccessToken,
  NewMember,
  NewWorkspace,
  NewWorkspaceLimits,
} from '../wire/identity.ts';
import type { JobChange, NewJob, Occurrence, Schedule } from '../wire/job.ts';
import type { EnvironmentFilters, JobFilters } from '../wire/lists.ts';
import {
  type Connection,
  type PostOptions,
  present,
  type RequestOptions,
  type WaitOptions,
  type WriteOptions,
} from './connection.ts';
import { bytesCallOf, callOf, operation, pagesOf, taggedCallOf } from './operation.ts';
import type { OrderedPageOptions, PageOptions } from './paging.ts';

/** Returns the resources that programs need to work in a workspace. */
export function resourcesOfPrograms(connection: Connection) {
  const occurrences = pagesOf(connection, 'listOccurrences');
  const deliveries = pagesOf(connection, 'listDeliveries');
  const asset = bytesCallOf(connection, 'getRunAsset');
  return {
    /** Execution environments. Each holds at most one active notebook session. */
    executionEnvironments: {
      ...pagesOf<'listExecutionEnvironments', PageOptions & EnvironmentFilters>(
        connection,
        'listExecutionEnvironments',
      ),
      create: callOf(connection, 'createExecutionEnvironment'),
      get: callOf(connection, 'getExecutionEnvironment'),
      /** Refused while sessions are attached. */
      close: callOf(connection, 'closeExecutionEnvironment'),
    },
    /** The packages that all notebooks of the workspace have. */
    packages: {
      /** Resolves with all packages, and the installation in progress. */
      list: callOf(connection, 'listPackages'),
      /** Resolves with the list while the installation continues, when it takes longer than `wait`. */
      add: (requirements: readonly string[], { wait, ...options }: PostOptions & WaitOptions = {}) =>
        connection.json(operation('addPackages', { query: { wait }, body: { requirements }, ...options })),
      remove: callOf(connection, 'removePackage'),
    },
    /** Jobs, which run notebooks at the instants of a schedule. */
    jobs: {
      ...pagesOf<'listJobs', OrderedPageOptions & JobFilters>(connection, 'listJobs'),
      create: (job: NewJob, options: PostOptions = {}) =>
        connection.json(operation('createJob', { body: job, ...options })),
      /** Resolves with the next instants of a schedule. */
      preview: (schedule: Schedule, timeZone?: string, options: PostOptions = {}) =>
        connection.json(
          operation('previewJob', { body: { schedule, ...present({ timeZone }) }, ...options }),
        ),
      get: callOf(connection, 'getJob'),
      /** Changes, pauses or resumes a job. */
      update: (jobId: string, change: JobChange, options: RequestOptions = {}) =>
        connection.json(operation('updateJob', { params: { jobId }, body: change, ...options })),
      delete: callOf(connection, 'deleteJob'),
      /** Fires a job now. Resolves with the occurrence. */
      run: callOf(connection, 'fireJob'),
      /** Resolves with a page of the history of a job. */
      occurrences: occurrences.list,
      /** Yields the whole history of a job. */
      eachOccurrence: occurrences.each,
      /** Resolves with the page that was kept of an occurrence; with undefined when there is none. */
      report: async (
        { runId, report }: Pick<Occurrence, 'runId' | 'report'>,
        options: RequestOptions = {},
      ) => {
        const assetId = report?.url?.split('/').at(-1);
        return runId === null || assetId === undefined ? undefined : asset(runId, assetId, options);
      },
    },
    /** Hooks at which other programs fire a job. */
    hooksIn: {
      list: callOf(connection, 'listHooksIn'),
      /** Resolves with the hook, its URL and its secret, which is shown only once. */
      create: (jobId: string, name: string | null = null, options: PostOptions = {}) =>
        connection.json(operation('createHookIn', { params: { jobId }, body: { name }, ...options })),
      delete: callOf(connection, 'deleteHookIn'),
    },
    /** Hooks, which tell other servers of events. */
    hooks: {
      ...pagesOf(connection, 'listHooks'),
      /** Resolves with the hook and its secret, which is shown only once. */
      create: (hook: NewHook, options: PostOptions = {}) =>
        connection.json(operation('createHook', { body: hook, ...options })),
      get: callOf(connection, 'getHook'),
      /** Changes, pauses or resumes a hook. */
      update: (hookId: string, change: HookChange, options: RequestOptions = {}) =>
        connection.json(operation('updateHook', { params: { hookId }, body: change, ...options })),
      delete: callOf(connection, 'deleteHook'),
      /** Gives the hook a new secret, which is shown only once. */
      rotate: callOf(connection, 'rotateHookSecret'),
      /** Sends a test. Resolves with the delivery. */
      test: callOf(connection, 'testHook'),
      /** Resolves with a page of the deliveries of a hook. */
      deliveries: deliveries.list,
      /** Yields all stored deliveries of a hook. */
      eachDelivery: deliveries.each,
      /** Sends a delivery again. */
      replay: callOf(connection, 'replayDelivery'),
    },
    /** The models that agents can use. */
    models: {
      list: callOf(connection, 'listModels'),
      /** Tests a model, or the default one, by asking it for one word. */
      test: (model?: string, options: PostOptions = {}) =>
        connection.json(operation('testModel', { body: present({ model }), ...options })),
      /** Sets the workspace's own API key for a provider. It is never returned. */
      setKey: (provider: string, key: string, options: RequestOptions = {}) =>
        connection.json(operation('setModelKey', { params: { provider }, body: { key }, ...options })),
      deleteKey: callOf(connection, 'deleteModelKey'),
    },
    /** Resolves with the user, the token, and a page of the workspaces that they give access to. */
    me: ({ signal, ...query }: PageOptions = {}) => connection.json(operation('getMe', { query, signal })),
  };
}

/** Returns the resources that owners and operators need in addition. */
export function resourcesOfOperators(connection: Connection) {
  return {
    /** The keyring of the server. The values of its keys are never returned. */
    keys: {
      list: callOf(connection, 'listKeys'),
      /** Adds a key, which encrypts new connections. */
      add: callOf(connection, 'addKey'),
      /** Deletes a key that encrypts nothing any more: backups that need it are then of no use with this keyring. */
      delete: callOf(connection, 'deleteKey'),
      /** Adds a key and encrypts all connections with it. The earlier keys stay for backups. */
      rotate: callOf(connection, 'rotateKeys'),
    },
    /** The kernel nodes of the server. Changes need a token with the scope `server:manage`. */
    nodes: {
      /** Needs the scope `server:observe` or `server:manage`. */
      list: callOf(connection, 'listNodes'),
      /** Makes an invitation for one machine. */
      invite: callOf(connection, 'inviteNode'),
      /** Decides whether a node gets new kernels. */
      drain: (node: string, draining: boolean, options: RequestOptions = {}) =>
        connection.json(operation('changeNode', { params: { node }, body: { draining }, ...options })),
      /** Ends the kernels of a node, which needs a new invitation to join again. */
      remove: callOf(connection, 'removeNode'),
    },
    /** The deletion of old records of the server. Needs a token with the scope `server:manage`. */
    retention: {
      /** Says that the clock of the server is right, so that old records are deleted again. */
      confirmClock: callOf(connection, 'confirmClock'),
    },
    /** Workspaces that the caller belongs to. */
    workspaces: {
      ...pagesOf(connection, 'listWorkspaces'),
      get: callOf(connection, 'getWorkspace'),
      /** Creates a workspace whose owner is the caller. */
      create: (workspace: NewWorkspace, options: PostOptions = {}) =>
        connection.json(operation('createWorkspace', { body: workspace, ...options })),
      /** Deletes a workspace for ever, with everything but its files. */
      delete: callOf(connection, 'deleteWorkspace'),
      /** Resolves with the limits of a workspace that apply. */
      limits: callOf(connection, 'getWorkspaceLimits'),
      /** Sets the limits of a workspace; an absent limit gets the value of the settings. Needs the scope `server:manage`. */
      setLimits: (workspaceId: string, limits: NewWorkspaceLimits, options: RequestOptions = {}) =>
        connection.json(
          operation('setWorkspaceLimits', { params: { workspaceId }, body: limits, ...options }),
        ),
    },
    /** Members of the workspace. */
    members: {
      ...pagesOf(connection, 'listMembers'),
      get: callOf(connection, 'getMember'),
      getTagged: taggedCallOf(connection, 'getMember'),
      create: (member: NewMember, options: PostOptions = {}) =>
        connection.json(operation('addMember', { body: member, ...options })),
      update: (userId: string, change: MemberChange, options: WriteOptions = {}) =>
        connection.json(operation('changeMember', { params: { userId }, body: change, ...options })),
      delete: callOf(connection, 'removeMember'),
    },
    /** Access tokens. Deleting one revokes it at once. */
    accessTokens: {
      ...pagesOf(connection, 'listAccessTokens'),
      get: callOf(connection, 'getAccessToken'),
      /** Resolves with the token itself, which no other call returns. */
      create: (token: NewAccessToken, options: PostOptions = {}) =>
        connection.json(operation('createAccessToken', { body: token, ...options })),
      delete: callOf(connection, 'revokeAccessToken'),
    },
  };
}
