import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { Hooks } from '#src/hooks/hooks.ts';
import type { HooksIn } from '#src/hooks/hooks-in.ts';
import type { Jobs } from '#src/jobs/jobs.ts';
import { AuthThrottle, type ThrottleLimits } from '../edge/auth-throttle.ts';
import { accepted, created, json, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type RequestHome, type Route } from '../route.ts';

const tags = ['Hooks'];

/** How many requests to hooks programs at one address may send. */
const REQUESTS: ThrottleLimits = {
  free: 60,
  perS: 5,
  refusal: 'Too many requests to hooks came from your address.',
};
const WRONG_SECRETS: ThrottleLimits = {
  free: 20,
  perS: 1,
  refusal: 'Too many requests with wrong secrets of hooks came from your address.',
};
/** The largest body of a request to a hook. */
const MAX_BODY_BYTES = 32 * 1024;

interface JobRequest {
  readonly principal: Principal;
  readonly params: { readonly jobId: string };
}

/** Hooks at which other programs fire a job. `workers` is the number of processes that share the limits. */
export function hookInRoutes(
  hooks: HooksIn,
  jobs: Pick<Jobs, 'homeOf'>,
  workers: number | undefined,
): readonly Route[] {
  const requests = new AuthThrottle(undefined, workers, REQUESTS);
  const guesses = new AuthThrottle(undefined, workers, WRONG_SECRETS);
  const homeOf = ({ principal, params }: JobRequest): RequestHome => {
    const id = jobs.homeOf(principal.workspaceId, params.jobId);
    return id === undefined ? undefined : { id };
  };
  return [
    defineRoute({
      ...OPERATIONS.createHookIn,
      summary: 'Create a hook that fires a job',
      description:
        'Other programs fire the job with a POST to the URL of the hook. A job has at most ten hooks.',
      tags,
      access: { action: 'job.write' },
      secretAnswer: true,
      homeOf,
      errors: ['quota_exceeded'],
      handle: ({ principal, params, body }) =>
        json(201, hooks.create(principal, params.jobId, body.name ?? null)),
    }),
    defineRoute({
      ...OPERATIONS.listHooksIn,
      summary: 'List the hooks that fire a job',
      tags,
      access: { action: 'job.write' },
      homeOf,
      handle: ({ principal, params }) => ok(hooks.list(principal, params.jobId)),
    }),
    defineRoute({
      ...OPERATIONS.deleteHookIn,
      summary: 'Delete a hook that fires a job',
      tags,
      access: { action: 'job.write' },
      homeOf,
      handle({ principal, params }) {
        hooks.delete(principal, params.jobId, params.hookInId);
        return noContent();
      },
    }),
    defineRoute({
      ...OPERATIONS.fireByHook,
      summary: 'Fire the job of a hook',
      description:
        'Needs the secret of the hook, as a bearer token or as a signature, and no access token. The body is JSON or empty. ' +
        'It becomes the argument `--payload=<json>` of the occurrence, of at most 8,000 characters.',
      tags,
      access: 'public',
      audited: true,
      ignoresKeys: true,
      bodyLimitBytes: MAX_BODY_BYTES,
      errors: [
        'unauthenticated',
        'malformed_json',
        'body_too_large',
        'job_running',
        'too_many_attempts',
        'unavailable',
        'not_found',
        'role_too_low',
      ],
      async handle({ params, headers, content, remoteAddress }) {
        requests.count(remoteAddress);
        const chunks: Uint8Array[] = [];
        for await (const chunk of content) chunks.push(chunk);
        const request = {
          hookInId: params.hookInId,
          authorization: headers.authorization,
          webhookId: headers['webhook-id'],
          webhookTimestamp: headers['webhook-timestamp'],
          webhookSignature: headers['webhook-signature'],
          idempotencyKey: headers['idempotency-key'],
          body: Buffer.concat(chunks),
        };
        try {
          return json(202, await hooks.fire(request));
        } catch (error) {
          const isGuess = error instanceof AppError && error.code === 'unauthenticated';
          throw isGuess ? guesses.recordFailure(remoteAddress, error) : error;
        }
      },
    }),
  ];
}

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
      handle: ({ principal, params, query }) => ok(hooks.deliveries(principal, params.hookId, query)),
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
