/**
 * The audit entries of operations whose handlers write none themselves, in one table, which can be read as a whole.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import type { OperationId } from '#src/contract/wire/paths.ts';
import type { AuditContext, AuditTrail } from '#src/people/audit/audit-trail.ts';
import type { Reply } from '../reply/reply.ts';
import type { AnyRouteRequest, Route } from '../route.ts';

/** An operation that has succeeded. */
interface Done {
  readonly params: Readonly<Record<string, string>>;
  /** The body of the request, which matches the schema of the operation. */
  readonly body: Fields;
  /** The JSON of the reply. */
  readonly answer: Fields;
}

type Fields = Readonly<Record<string, unknown>>;
type EntryOf = (done: Done) => Entry | readonly Entry[];
type Entry = { readonly action: string; readonly target: string; readonly detail?: string };

const CHANGES: Readonly<Record<string, EntryOf>> = {
  addMember: ({ body }) => ({ action: 'member.add', target: text(body.userId), detail: text(body.role) }),
  changeMember: ({ params, answer }) => ({
    action: 'member.change',
    target: text(params.userId),
    detail: text(answer.role),
  }),
  removeMember: ({ params }) => ({ action: 'member.remove', target: text(params.userId) }),
  createAccessToken: ({ answer }) => ({
    action: 'token.create',
    target: text(answer.id),
    detail: `for ${text(answer.userId)}: ${[answer.scopes].flat().join(' ')}`,
  }),
  revokeAccessToken: ({ params }) => ({ action: 'token.revoke', target: text(params.tokenId) }),
  createWorkspace: ({ answer }) => ({ action: 'workspace.create', target: text(answer.id) }),
  deleteWorkspace: ({ params }) => ({ action: 'workspace.delete', target: text(params.workspaceId) }),
  setModelKey: ({ params }) => ({ action: 'model-key.set', target: text(params.provider) }),
  deleteModelKey: ({ params }) => ({ action: 'model-key.delete', target: text(params.provider) }),
  addKey: ({ answer }) => ({ action: 'keyring.add', target: activeKey(answer) }),
  rotateKeys: ({ answer }) => ({ action: 'keyring.rotate', target: activeKey(answer) }),
  deleteKey: ({ params }) => ({ action: 'keyring.delete', target: text(params.keyId) }),
  hibernateNotebookSession: ({ params }) => ({ action: 'session.hibernate', target: text(params.sessionId) }),
  interruptNotebookSession: ({ params, answer }) =>
    answer.status === 'idle'
      ? []
      : {
          action: 'session.interrupt',
          target: text(params.sessionId),
          detail: answer.runId === null ? 'code' : text(answer.runId),
        },
  wakeNotebookSession: ({ params }) => ({ action: 'session.wake', target: text(params.sessionId) }),
  closeNotebookSession: ({ params }) => ({ action: 'session.close', target: text(params.sessionId) }),
  closeAgentSession: ({ params }) => ({ action: 'conversation.close', target: text(params.sessionId) }),
  closeExecutionEnvironment: ({ params }) => ({
    action: 'environment.close',
    target: text(params.environmentId),
  }),
  createJob: ({ answer }) => ({ action: 'job.create', target: text(answer.id) }),
  updateJob: ({ params }) => ({ action: 'job.change', target: text(params.jobId) }),
  deleteJob: ({ params }) => ({ action: 'job.delete', target: text(params.jobId) }),
  fireJob: ({ params, answer }) => ({
    action: 'job.fire',
    target: text(params.jobId),
    detail: text(answer.id),
  }),
  createHook: ({ answer }) => ({ action: 'hook.create', target: text(answer.id) }),
  updateHook: ({ params }) => ({ action: 'hook.change', target: text(params.hookId) }),
  deleteHook: ({ params }) => ({ action: 'hook.delete', target: text(params.hookId) }),
  rotateHookSecret: ({ params }) => ({ action: 'hook.rotate', target: text(params.hookId) }),
  testHook: ({ params, answer }) => ({
    action: 'hook.test',
    target: text(params.hookId),
    detail: text(answer.id),
  }),
  replayDelivery: ({ params }) => ({
    action: 'hook.replay',
    target: text(params.hookId),
    detail: text(params.deliveryId),
  }),
  createHookIn: ({ params, answer }) => ({
    action: 'hook-in.create',
    target: text(answer.id),
    detail: text(params.jobId),
  }),
  deleteHookIn: ({ params }) => ({ action: 'hook-in.delete', target: text(params.hookInId) }),
  cancelRun: ({ params }) => ({ action: 'run.cancel', target: text(params.runId) }),
  cancelRuns: ({ answer }) =>
    itemsOf(answer)
      .filter(({ status }) => status === 'cancelling')
      .map(({ runId }) => ({ action: 'run.cancel', target: text(runId) })),
  deleteNotebook: ({ params }) => ({ action: 'notebook.delete', target: text(params.notebookId) }),
  importNotebook: ({ body }) =>
    body.settingsFrom === undefined
      ? []
      : { action: 'notebook.copy-settings', target: text(body.settingsFrom) },
  restoreNotebookVersion: ({ params }) => ({
    action: 'notebook.restore',
    target: text(params.notebookId),
    detail: text(params.version),
  }),
  setNotebookSecret: ({ params }) => ({
    action: 'notebook-secret.set',
    target: text(params.notebookId),
    detail: text(params.name),
  }),
  deleteNotebookSecret: ({ params }) => ({
    action: 'notebook-secret.delete',
    target: text(params.notebookId),
    detail: text(params.name),
  }),
  removePackage: ({ params }) => ({ action: 'package.remove', target: text(params.name) }),
  deleteFile: ({ params }) => ({ action: 'file.delete', target: text(params.path) }),
  deleteRun: ({ params }) => ({ action: 'run.delete', target: text(params.runId) }),
  deleteRunAsset: ({ params }) => ({
    action: 'run-asset.delete',
    target: text(params.runId),
    detail: text(params.assetId),
  }),
  deleteConversation: ({ params }) => ({ action: 'conversation.delete', target: text(params.sessionId) }),
  grantAgentSession: ({ params, body }) => ({
    action: 'conversation.share',
    target: text(params.sessionId),
    detail: `user:${text(body.userId)}`,
  }),
  handOverAgentSession: ({ params, body }) => ({
    action: 'conversation.hand-over',
    target: text(params.sessionId),
    detail: `user:${text(body.userId)}`,
  }),
  revokeAgentSessionGrant: ({ params }) => ({
    action: 'conversation.unshare',
    target: text(params.sessionId),
    detail: `user:${text(params.userId)}`,
  }),
} satisfies { readonly [Id in OperationId]?: EntryOf };

/** Returns the routes. A route in the table also writes its audit entry, in the turn and the commit of its change. */
export function withAudit(routes: readonly Route[], audit: AuditTrail): Route[] {
  return routes.map((route) => {
    const entryOf = CHANGES[route.operationId];
    if (entryOf === undefined) return route;
    const noted = (request: AnyRouteRequest, reply: Reply): Reply => {
      const { principal, remoteAddress, requestId, params } = request;
      if (principal === undefined) return reply;
      const answer = reply.kind === 'json' ? Object(reply.value) : {};
      const entry: Entry | readonly Entry[] = entryOf({ params, body: Object(request.body), answer });
      const changes = [entry].flat().map((one) => ({ ...one, outcome: 'done' as const }));
      if (changes.length > 0) audit.note(auditContextOf({ principal, remoteAddress, requestId }), ...changes);
      return reply;
    };
    return {
      ...route,
      audited: true,
      handle(request) {
        const reply = route.handle(request);
        if (reply instanceof Promise) return reply.then((settled) => noted(request, settled));
        return noted(request, reply);
      },
    };
  });
}

/** Returns the facts about a request's caller that the audit records. */
export function auditContextOf({
  principal,
  remoteAddress,
  requestId,
}: Pick<AnyRouteRequest, 'remoteAddress' | 'requestId'> & { readonly principal: Principal }): AuditContext {
  return { principal, address: remoteAddress, requestId };
}

/** Returns the id of the active key in a reply that lists keys. */
function activeKey(answer: Fields): string {
  return text(itemsOf(answer).find(({ active }) => active === true)?.id);
}

function itemsOf({ items }: Fields): readonly Fields[] {
  return Array.isArray(items) ? items : [];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
