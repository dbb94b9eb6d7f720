/**
 * The tools of MCP for hooks, with which an agent finds out why a message has not arrived. No tool creates a hook or rotates a secret,
 * because the answer has the secret. The path of a URL is left out, because the one of a chat is a secret, and so is the answer of a
 * receiver, which may quote the path.
 */
import Type from 'typebox';
import { completed, defineTool, type Tool } from '#src/agent/tools/tool.ts';
import type { Delivery, Hook } from '#src/contract/wire/hook.ts';
import type { McpCall } from './mcp-call.ts';

const closed = { additionalProperties: false } as const;

const HOOK = {
  hookId: Type.String({
    minLength: 1,
    maxLength: 200,
    description: 'The id of the hook, as list_hooks returns it.',
  }),
};
const PAGE = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '20 if not given.' })),
  after: Type.Optional(Type.String({ maxLength: 400, description: 'The nextCursor of the page before.' })),
};
const PAGE_ITEMS = 20;

/** Returns the tools. They make requests of the API with the rights of the caller. */
export function hookTools(): Tool<McpCall>[] {
  return [
    defineTool({
      name: 'list_hooks',
      description:
        'The hooks of the workspace, the newest first: which events they send to which server, how many deliveries wait, and the ' +
        'reason why one is paused.',
      schema: Type.Object(PAGE, closed),
      async run({ limit = PAGE_ITEMS, ...page }, { client, signal }: McpCall) {
        const { items, nextCursor } = await client.hooks.list({ order: 'desc', limit, ...page, signal });
        const hooks = items.map(shownHook);
        const text = hooks.map(lineOf);
        if (nextCursor !== null) text.push(`[more: after ${nextCursor}]`);
        return completed(text.join('\n') || 'There are no hooks.', { hooks, nextCursor });
      },
    }),
    defineTool({
      name: 'hook_deliveries',
      description:
        'What a hook has sent, the newest first: the event, whether it has arrived, how many attempts there were, and why the last ' +
        'one failed.',
      schema: Type.Object({ ...HOOK, ...PAGE }, closed),
      async run({ hookId, limit = PAGE_ITEMS, ...page }, { client, signal }: McpCall) {
        const query = { order: 'desc', limit, ...page, signal } as const;
        const { items, nextCursor } = await client.hooks.deliveries(hookId, query);
        const deliveries = items.map(shownDelivery);
        const text = deliveries.map(deliveryLine);
        if (nextCursor !== null) text.push(`[more: after ${nextCursor}]`);
        return completed(text.join('\n') || 'The hook has sent nothing yet.', { deliveries, nextCursor });
      },
    }),
    defineTool({
      name: 'test_hook',
      description:
        'Send a test event by a hook that is not paused. It returns at once; hook_deliveries shows whether the test has arrived.',
      schema: Type.Object(HOOK, closed),
      async run({ hookId }, { client, signal }: McpCall) {
        return deliveryOutcome(await client.hooks.test(hookId, { signal }));
      },
    }),
    defineTool({
      name: 'replay_delivery',
      description:
        'Send a delivery of a hook again, with the same id, which a receiver may ignore if it knows the id. It returns at once; ' +
        'hook_deliveries shows how it ends.',
      schema: Type.Object(
        {
          ...HOOK,
          deliveryId: Type.String({
            minLength: 1,
            maxLength: 200,
            description: 'The id of the delivery, as hook_deliveries returns it.',
          }),
        },
        closed,
      ),
      async run({ hookId, deliveryId }, { client, signal }: McpCall) {
        return deliveryOutcome(await client.hooks.replay(hookId, deliveryId, { signal }));
      },
    }),
    defineTool({
      name: 'resume_hook',
      description:
        'Resume a paused hook, for example one that has paused itself because its receiver did not answer. It sends what had waited ' +
        'before the pause.',
      schema: Type.Object(HOOK, closed),
      async run({ hookId }, { client, signal }: McpCall) {
        // The hook is read first, because the caller wants it resumed whatever others have changed.
        const { updatedAt: expectedUpdatedAt } = await client.hooks.get(hookId, { signal });
        const change = { expectedUpdatedAt, paused: false };
        const hook = shownHook(await client.hooks.update(hookId, change, { signal }));
        return completed(lineOf(hook), { hook });
      },
    }),
  ];
}

/** Returns the members of a hook that a model needs. */
function shownHook({ id: hookId, name, url, events, filter, status, reason, pending }: Hook) {
  return { hookId, name, receiver: new URL(url).origin, events, filter, status, reason, pending };
}

function lineOf({ hookId, name, receiver, events, status, reason, pending }: ReturnType<typeof shownHook>) {
  const why = reason === null ? '' : `: ${reason.message}`;
  const waiting = pending === 0 ? '' : `, ${pending} waiting`;
  return `${hookId} ${name ?? '(no name)'}, ${events.join(' ')} to ${receiver}, ${status}${waiting}${why}`;
}

function deliveryOutcome(delivery: Delivery) {
  const shown = shownDelivery(delivery);
  return completed(deliveryLine(shown), { delivery: shown });
}

/** Returns the members of a delivery that a model needs. */
function shownDelivery(delivery: Delivery) {
  const { id: deliveryId, event, status, attempts, reason, responseStatus, ...times } = delivery;
  const { queuedAt, lastAttemptAt, nextAttemptAt, finishedAt } = times;
  return {
    deliveryId,
    event,
    status,
    attempts,
    reason,
    responseStatus,
    queuedAt,
    lastAttemptAt,
    nextAttemptAt,
    finishedAt,
  };
}

function deliveryLine(delivery: ReturnType<typeof shownDelivery>): string {
  const { deliveryId, event, status, attempts, reason, nextAttemptAt, queuedAt } = delivery;
  const why = reason === null ? '' : `: ${reason.message}`;
  const then = attempts === 0 || nextAttemptAt === null ? '' : `, next attempt ${nextAttemptAt}`;
  return `${queuedAt} ${deliveryId} ${event} ${status}, attempts: ${attempts}${then}${why}`;
}
