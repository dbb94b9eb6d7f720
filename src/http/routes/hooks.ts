import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { Hooks } from '#src/hooks/hooks.ts';
import { accepted, created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const tags = ['Hooks'];

/** Hooks, which tell other servers of events, and their deliveries. */
export function hookRoutes(hooks: Hooks): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.createHook,
      summary: 'Create a hook',
      description:
        'The server posts each event that the hook asks for to its URL, signed after the Standard Webhooks text. It tries for 24 ' +
        'hours, until the receiver answers with a status of 200 to 299. So an event is delivered at least once.',
      tags,
      access: { action: 'hook.write' },
      secretAnswer: true,
      errors: ['not_found', 'quota_exceeded'],
      handle({ principal, body }) {
        const hook = hooks.create(principal, body);
        return created(hook, pathOf('getHook', { hookId: hook.id }));
      },
    }),
    defineRoute({
      ...OPERATIONS.listHooks,
      summary: 'List hooks, by the time at which they were created',
      tags,
      access: { action: 'hook.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(hooks.list(principal.workspaceId, query)),
    }),
    defineRoute({
      ...OPERATIONS.getHook,
      summary: 'Read a hook with its state',
      tags,
      access: { action: 'hook.read' },
      handle: ({ principal, params }) => ok(hooks.read(principal.workspaceId, params.hookId)),
    }),
    defineRoute({
      ...OPERATIONS.updateHook,
      summary: 'Change, pause or resume a hook',
      description:
        'Replaces the members that are given. The owner of the hook and owners of the workspace can change it. ' +
        'A hook that is resumed sends what had waited before the pause.',
      tags,
      access: { action: 'hook.write' },
      errors: ['stale_update'],
      handle: ({ principal, params, body }) => ok(hooks.change(principal, params.hookId, body)),
    }),
    defineRoute({
      ...OPERATIONS.deleteHook,
      summary: 'Delete a hook with its deliveries',
      tags,
      access: { action: 'hook.write' },
      handle({ principal, params }) {
        hooks.delete(principal, params.hookId);
        return noContent();
      },
    }),
    defineRoute({
      ...OPERATIONS.rotateHookSecret,
      summary: 'Give a hook a new secret',
      description:
        'For 24 hours each request has two signatures, of the new secret and of the one before. A further rotation ends the older one.',
      tags,
      access: { action: 'hook.write' },
      secretAnswer: true,
      handle: ({ principal, params }) => ok(hooks.rotate(principal, params.hookId)),
    }),
    defineRoute({
      ...OPERATIONS.testHook,
      summary: 'Send a test to the receiver of a hook',
      description: 'Queues a delivery of the event `hook.test`, which is sent like any other.',
      tags,
      access: { action: 'hook.write' },
      errors: ['hook_paused'],
      handle({ principal, params: { hookId } }) {
        return accepted(hooks.test(principal, hookId), pathOf('listDeliveries', { hookId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.listDeliveries,
      summary: 'List the deliveries of a hook, oldest first unless the order says otherwise',
      description: 'A hook keeps its last 1,000 deliveries.',
      tags,
      access: { action: 'hook.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: ({ principal, params, query }) =>
        ok(hooks.deliveries(principal.workspaceId, params.hookId, query)),
    }),
    defineRoute({
      ...OPERATIONS.replayDelivery,
      summary: 'Send a delivery again',
      description: 'The delivery keeps its id. A delivery that waits is not changed.',
      tags,
      access: { action: 'hook.write' },
      errors: ['hook_paused'],
      handle({ principal, params: { hookId, deliveryId } }) {
        return accepted(hooks.replay(principal, hookId, deliveryId), pathOf('listDeliveries', { hookId }));
      },
    }),
  ];
}
