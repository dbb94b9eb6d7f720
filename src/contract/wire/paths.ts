/**
 * The method and the path of every operation, by its id: the one place in which they are written. It is plain data, so that
 * the client has it without a schema library; `operations/` has the schemas under the same ids.
 */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** `:name` in a path is a parameter, `:name*` at its end everything that follows, slashes included. */
export const PATHS = {
  listNotebooks: 'GET /api/v3/notebooks',
  createNotebook: 'POST /api/v3/notebooks',
  getNotebook: 'GET /api/v3/notebooks/:notebookId',
  updateNotebook: 'PATCH /api/v3/notebooks/:notebookId',
  deleteNotebook: 'DELETE /api/v3/notebooks/:notebookId',
  exportNotebook: 'GET /api/v3/notebooks/:notebookId/export',
  listNotebookVersions: 'GET /api/v3/notebooks/:notebookId/versions',
  getNotebookVersion: 'GET /api/v3/notebooks/:notebookId/versions/:version',
  restoreNotebookVersion: 'POST /api/v3/notebooks/:notebookId/versions/:version/restore',
  listNotebookSecrets: 'GET /api/v3/notebooks/:notebookId/secrets',
  setNotebookSecret: 'PUT /api/v3/notebooks/:notebookId/secrets/:name',
  deleteNotebookSecret: 'DELETE /api/v3/notebooks/:notebookId/secrets/:name',
  importNotebook: 'POST /api/v3/notebooks/import',

  executeCode: 'POST /api/cee/kernel/execute',
  listNotebookSessions: 'GET /api/v3/notebook-sessions',
  openNotebookSession: 'POST /api/v3/notebook-sessions',
  getNotebookSession: 'GET /api/v3/notebook-sessions/:sessionId',
  closeNotebookSession: 'DELETE /api/v3/notebook-sessions/:sessionId',
  createNotebookEventTicket: 'POST /api/v3/notebook-sessions/:sessionId/event-tickets',
  followNotebookSession: 'GET /api/v3/notebook-sessions/:sessionId/events',
  getNotebookSessionAsset: 'GET /api/v3/notebook-sessions/:sessionId/assets/:assetId',
  listExecutions: 'GET /api/v3/notebook-sessions/:sessionId/executions',
  submitExecution: 'POST /api/v3/notebook-sessions/:sessionId/executions',
  hibernateNotebookSession: 'POST /api/v3/notebook-sessions/:sessionId/hibernate',
  interruptNotebookSession: 'POST /api/v3/notebook-sessions/:sessionId/interrupt',
  wakeNotebookSession: 'POST /api/v3/notebook-sessions/:sessionId/wake',
  changeCells: 'POST /api/v3/notebook-sessions/:sessionId/changes',
  setUiValues: 'POST /api/v3/notebook-sessions/:sessionId/ui-values',
  callFunction: 'POST /api/v3/notebook-sessions/:sessionId/function-calls',
  completeCode: 'POST /api/v3/notebook-sessions/:sessionId/completions',
  createNotebookPage: 'POST /api/v3/notebook-sessions/:sessionId/pages',

  listExecutionEnvironments: 'GET /api/v3/execution-environments',
  createExecutionEnvironment: 'POST /api/v3/execution-environments',
  getExecutionEnvironment: 'GET /api/v3/execution-environments/:environmentId',
  closeExecutionEnvironment: 'DELETE /api/v3/execution-environments/:environmentId',

  listAgentSessions: 'GET /api/v3/agent-sessions',
  openAgentSession: 'POST /api/v3/agent-sessions',
  getAgentSession: 'GET /api/v3/agent-sessions/:sessionId',
  closeAgentSession: 'DELETE /api/v3/agent-sessions/:sessionId',
  deleteConversation: 'DELETE /api/v3/agent-sessions/:sessionId/conversation',
  listConversationEntries: 'GET /api/v3/agent-sessions/:sessionId/entries',
  createAgentEventTicket: 'POST /api/v3/agent-sessions/:sessionId/event-tickets',
  followAgentSession: 'GET /api/v3/agent-sessions/:sessionId/events',
  listAgentSessionGrants: 'GET /api/v3/agent-sessions/:sessionId/grants',
  grantAgentSession: 'POST /api/v3/agent-sessions/:sessionId/grants',
  revokeAgentSessionGrant: 'DELETE /api/v3/agent-sessions/:sessionId/grants/:userId',
  handOverAgentSession: 'PUT /api/v3/agent-sessions/:sessionId/owner',
  listPrompts: 'GET /api/v3/agent-sessions/:sessionId/runs',
  submitPrompt: 'POST /api/v3/agent-sessions/:sessionId/runs',

  listJobs: 'GET /api/v3/jobs',
  createJob: 'POST /api/v3/jobs',
  previewJob: 'POST /api/v3/jobs/preview',
  getJob: 'GET /api/v3/jobs/:jobId',
  updateJob: 'PATCH /api/v3/jobs/:jobId',
  deleteJob: 'DELETE /api/v3/jobs/:jobId',
  fireJob: 'POST /api/v3/jobs/:jobId/run',
  listOccurrences: 'GET /api/v3/jobs/:jobId/occurrences',

  listHooks: 'GET /api/v3/hooks',
  createHook: 'POST /api/v3/hooks',
  getHook: 'GET /api/v3/hooks/:hookId',
  updateHook: 'PATCH /api/v3/hooks/:hookId',
  deleteHook: 'DELETE /api/v3/hooks/:hookId',
  rotateHookSecret: 'POST /api/v3/hooks/:hookId/rotate',
  testHook: 'POST /api/v3/hooks/:hookId/test',
  createHookIn: 'POST /api/v3/jobs/:jobId/hooks-in',
  listHooksIn: 'GET /api/v3/jobs/:jobId/hooks-in',
  deleteHookIn: 'DELETE /api/v3/jobs/:jobId/hooks-in/:hookInId',
  fireByHook: 'POST /api/v3/hooks-in/:hookInId',
  listDeliveries: 'GET /api/v3/hooks/:hookId/deliveries',
  replayDelivery: 'POST /api/v3/hooks/:hookId/deliveries/:deliveryId/replay',

  listRuns: 'GET /api/v3/runs',
  getRun: 'GET /api/v3/runs/:runId',
  deleteRun: 'DELETE /api/v3/runs/:runId',
  getRunAsset: 'GET /api/v3/runs/:runId/assets/:assetId',
  deleteRunAsset: 'DELETE /api/v3/runs/:runId/assets/:assetId',
  cancelRun: 'POST /api/v3/runs/:runId/cancel',
  cancelRuns: 'POST /api/v3/runs/cancel',

  getConnectionSchema: 'GET /api/v3/datasource-connections/schema',
  testConnection: 'POST /api/v3/datasource-connections/test',
  listDatasources: 'GET /api/v3/datasources',
  createDatasource: 'POST /api/v3/datasources',
  getDatasource: 'GET /api/v3/datasources/:slug',
  replaceDatasource: 'PUT /api/v3/datasources/:slug',
  deleteDatasource: 'DELETE /api/v3/datasources/:slug',
  listDatasourceGrants: 'GET /api/v3/datasources/:slug/grants',
  grantDatasource: 'POST /api/v3/datasources/:slug/grants',
  revokeDatasourceGrant: 'DELETE /api/v3/datasources/:slug/grants/:subject',
  testDatasource: 'POST /api/v3/datasources/:slug/test',

  listModels: 'GET /api/v3/models',
  setModelKey: 'PUT /api/v3/models/keys/:provider',
  deleteModelKey: 'DELETE /api/v3/models/keys/:provider',
  testModel: 'POST /api/v3/models/test',

  listPackages: 'GET /api/v3/packages',
  addPackages: 'POST /api/v3/packages',
  removePackage: 'DELETE /api/v3/packages/:name',

  listFiles: 'GET /api/v3/files',
  getFile: 'GET /api/v3/files/:path*',
  putFile: 'PUT /api/v3/files/:path*',
  deleteFile: 'DELETE /api/v3/files/:path*',

  listAccessTokens: 'GET /api/v3/access-tokens',
  createAccessToken: 'POST /api/v3/access-tokens',
  getAccessToken: 'GET /api/v3/access-tokens/:tokenId',
  revokeAccessToken: 'DELETE /api/v3/access-tokens/:tokenId',
  getMe: 'GET /api/v3/me',
  listMembers: 'GET /api/v3/members',
  addMember: 'POST /api/v3/members',
  getMember: 'GET /api/v3/members/:userId',
  changeMember: 'PATCH /api/v3/members/:userId',
  removeMember: 'DELETE /api/v3/members/:userId',
  listWorkspaces: 'GET /api/v3/workspaces',
  createWorkspace: 'POST /api/v3/workspaces',
  getWorkspace: 'GET /api/v3/workspaces/:workspaceId',
  deleteWorkspace: 'DELETE /api/v3/workspaces/:workspaceId',
  getWorkspaceLimits: 'GET /api/v3/workspaces/:workspaceId/limits',
  setWorkspaceLimits: 'PUT /api/v3/workspaces/:workspaceId/limits',

  inspectActors: 'GET /api/v3/actors',
  inspectActor: 'GET /api/v3/actors/:kind/:id',
  followActors: 'GET /api/v3/actors/events',
  listAudit: 'GET /api/v3/audit',
  getChart: 'GET /api/v3/charts/:machine',
  listKernels: 'GET /api/v3/kernels',
  listKeys: 'GET /api/v3/keys',
  addKey: 'POST /api/v3/keys',
  deleteKey: 'DELETE /api/v3/keys/:keyId',
  rotateKeys: 'POST /api/v3/keys/rotate',
  listNodes: 'GET /api/v3/nodes',
  inviteNode: 'POST /api/v3/nodes/invitations',
  changeNode: 'PATCH /api/v3/nodes/:node',
  removeNode: 'DELETE /api/v3/nodes/:node',
  confirmClock: 'POST /api/v3/retention/confirm',
  getOpenApi: 'GET /api/v3/openapi.json',
  getServer: 'GET /api/v3/server',
  followServer: 'GET /api/v3/server/events',
  getServerLog: 'GET /api/v3/server/log',
  getUsage: 'GET /api/v3/usage',
  getHealth: 'GET /healthz',
  getMetrics: 'GET /metrics',
  getReadiness: 'GET /readyz',

  callMcp: 'POST /mcp',

  getSignInPage: 'GET /sign-in',
  getSignInOptions: 'GET /sign-in/options',
  beginProviderSignIn: 'GET /sign-in/provider',
  completeProviderSignIn: 'GET /sign-in/callback',
  signIn: 'POST /sign-in',
  signOut: 'POST /sign-out',
  beginCommandLineSignIn: 'POST /sign-in/command-line',
  fetchCommandLineSignIn: 'POST /sign-in/command-line/token',
  getCommandLineSignIn: 'GET /sign-in/command-line/:code',
  decideCommandLineSignIn: 'POST /sign-in/command-line/:code',
  signOutEverywhere: 'POST /sign-out/everywhere',

  getHomePage: 'GET /',
  getLandingPage: 'GET /about',
  getConsole: 'GET /console',
  redirectToConsole: 'GET /console/',
  getConsoleFile: 'GET /console/:file',
  getApiPage: 'GET /docs',
  redirectToApiPage: 'GET /docs/',
  getApiPageFile: 'GET /docs/:file',
  openNotebookPage: 'GET /n/:notebookId/open/:code*',
  redirectToNotebookPage: 'GET /n/:notebookId',
  getNotebookPage: 'GET /n/:notebookId/',
  getNotebookDocument: 'GET /n/:notebookId/page/',
  followNotebookPresence: 'GET /n/:notebookId/presence',
  followNotebookPage: 'GET /n/:notebookId/sse',
  readFilesFromNotebookPage: 'GET /n/:notebookId/api/files/:path*',
  downloadFromNotebookPage: 'GET /n/:notebookId/api/files/download',
  uploadFromNotebookPage: 'POST /n/:notebookId/api/files/create',
  changeFilesFromNotebookPage: 'POST /n/:notebookId/api/files/:path*',
  uploadToElement: 'POST /n/:notebookId/api/element-files',
  readPackagesFromNotebookPage: 'GET /n/:notebookId/api/packages/:path*',
  changePackagesFromNotebookPage: 'POST /n/:notebookId/api/packages/:path*',
  readFromNotebookPage: 'GET /n/:notebookId/api/:path*',
  sendFromNotebookPage: 'POST /n/:notebookId/api/:path*',
  getPublicFile: 'GET /n/:notebookId/public/:code*',
  getLinkedPublicFile: 'GET /n/:notebookId/page/public/:path*',
  renewPublicCode: 'GET /n/:notebookId/api/public-code',
  getNotebookPageIcon: 'GET /n/:notebookId/favicon.ico',
  getNotebookPageHealth: 'GET /n/:notebookId/health',
  getFrontEndFile: 'GET /marimo/:version/:file',
  getFrontEndAsset: 'GET /marimo/:version/assets/:file',
} as const satisfies Readonly<Record<string, `${Method} /${string}`>>;

export type OperationId = keyof typeof PATHS;

export type MethodOf<Id extends OperationId> =
  (typeof PATHS)[Id] extends `${infer M extends Method} ${string}` ? M : never;

export type PathOf<Id extends OperationId> = (typeof PATHS)[Id] extends `${string} ${infer Path}`
  ? Path
  : never;

/** The names of the parameters of a path. */
export type ParamNames<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer Tail}`
    ? Name | ParamNames<Tail>
    : Rest extends `${infer Name}*`
      ? Name
      : Rest
  : never;

/** Returns the method and the path of an operation. */
export function addressOf<Id extends OperationId>(
  id: Id,
): { readonly method: MethodOf<Id>; readonly path: PathOf<Id> } {
  const [method, path] = PATHS[id].split(' ');
  return { method: method as MethodOf<Id>, path: path as PathOf<Id> };
}

/** The parameters of the path of an operation. */
export type ParamsOf<Id extends OperationId> = Readonly<Record<ParamNames<PathOf<Id>>, string>>;

/** Returns the path of an operation for these parameters. */
export function pathOf<Id extends OperationId>(id: Id, params: ParamsOf<Id>): string {
  return filledPath(addressOf(id).path, params);
}

/** Returns a path with its parameters, which are percent-encoded. */
export function filledPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+)(\*?)/g, (_, name: string, openEnd: string) => {
    const value = params[name] ?? '';
    return (openEnd === '' ? [value] : value.split('/')).map(encodeURIComponent).join('/');
  });
}
