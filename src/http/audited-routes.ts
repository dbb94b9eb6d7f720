/** What the audit is told of operations whose parts know nothing of it: one table, so that it can be read as a whole. */
import type { AuditContext, AuditedChange } from '#src/audit/audit-trail.ts';
import type { Principal } from '#src/core/principal.ts';
import type { Reply } from './reply.ts';
import type { AnyExchange, Route } from './route.ts';

/** An operation that has been done. */
interface Done {
  readonly params: Readonly<Record<string, string>>;
  /** Checked against the schema of the operation. */
  readonly body: Fields;
  /** Of the answer. */
  readonly answer: Fields;
}

type Fields = Readonly<Record<string, unknown>>;
type Entry = { readonly action: string; readonly target: string; readonly detail?: string };

const CHANGES: Readonly<Record<string, (done: Done) => Entry>> = {
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
  setModelKey: ({ params }) => ({ action: 'model-key.set', target: text(params.provider) }),
  deleteModelKey: ({ params }) => ({ action: 'model-key.delete', target: text(params.provider) }),
  addKey: ({ answer }) => ({ action: 'keyring.add', target: activeKey(answer) }),
  rotateKeys: ({ answer }) => ({ action: 'keyring.rotate', target: activeKey(answer) }),
  grantAgentSession: ({ params, body }) => ({
    action: 'conversation.share',
    target: text(params.sessionId),
    detail: `user:${text(body.userId)}`,
  }),
  revokeAgentSessionGrant: ({ params }) => ({
    action: 'conversation.unshare',
    target: text(params.sessionId),
    detail: `user:${text(params.userId)}`,
  }),
};

export type NoteChanges = (actor: AuditContext, changes: readonly AuditedChange[]) => void;

/** Returns the routes, of which those in the table note that they were done, in the turn in which they were. */
export function withAudit(routes: readonly Route[], note: NoteChanges): Route[] {
  return routes.map((route) => {
    const entryOf = CHANGES[route.operationId];
    if (entryOf === undefined) return route;
    const noted = (exchange: AnyExchange, reply: Reply): Reply => {
      const { principal, remoteAddress, requestId, params } = exchange;
      if (principal === undefined) return reply;
      const answer = reply.kind === 'json' ? Object(reply.value) : {};
      const entry = entryOf({ params, body: Object(exchange.body), answer });
      note(actorOf({ principal, remoteAddress, requestId }), [{ ...entry, outcome: 'done' }]);
      return reply;
    };
    return {
      ...route,
      audited: true,
      handle(exchange) {
        const reply = route.handle(exchange);
        if (reply instanceof Promise) return reply.then((settled) => noted(exchange, settled));
        return noted(exchange, reply);
      },
    };
  });
}

/** Who an audited request comes from. */
export function actorOf({
  principal,
  remoteAddress,
  requestId,
}: Pick<AnyExchange, 'remoteAddress' | 'requestId'> & { readonly principal: Principal }): AuditContext {
  return { principal, address: remoteAddress, requestId };
}

/** Of the keys that an answer lists, the one that seals from now on. */
function activeKey({ items }: Fields): string {
  const keys: readonly Fields[] = Array.isArray(items) ? items : [];
  return text(keys.find(({ active }) => active === true)?.id);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
