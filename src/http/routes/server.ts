import type { TokenHolder } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { OPEN_METRICS_TYPE } from '#src/base/metrics/registry.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { KernelList, ServerLog, ServerState } from '#src/contract/wire/server.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import { ok, raw, stream } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const SCOPE = 'server:observe';

/** The common part of the operations on the whole server. */
const OF_SERVER = { tags: ['Operations'], access: 'token', errors: ['missing_scope'] } as const;
const NEEDS_SCOPE = `It needs a token with the scope \`${SCOPE}\` that is not bound to a workspace, and no \`Service-Workspace-Id\`.`;

/**
 * The operators' view of the whole server and of its kernels. Reading this view starts nothing and wakes no session.
 */
export interface ServerObservation {
  /** Resolves with the metrics as OpenMetrics text. */
  readonly metrics: () => Promise<string>;
  readonly state: () => Promise<ServerState>;
  /** Attaches a subscriber to the stream of the server's load. */
  readonly follow: (sink: EventSink) => Subscription;
  /** The last lines of the log, oldest first. */
  readonly log: () => Promise<ServerLog>;
  /** The kernels of a workspace, all or some. */
  readonly kernels: (
    workspaceId: string,
    choice: { readonly sessionId?: string; readonly limit?: number },
  ) => Promise<KernelList>;
}

/** The metrics and the state of the whole server, and the kernels of a workspace. */
export function serverRoutes({ metrics, state, follow, log, kernels }: ServerObservation): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getMetrics,
      summary: 'Read the metrics of the server',
      description:
        `Text in the OpenMetrics format, for Prometheus and others. ${NEEDS_SCOPE} ` +
        'No label contains an id, a user, a workspace or a path.',
      ...OF_SERVER,
      whileDraining: true,
      async handle({ holder }) {
        requireObserver(holder);
        return raw(OPEN_METRICS_TYPE, Buffer.from(await metrics()));
      },
    }),
    defineRoute({
      ...OPERATIONS.getServer,
      summary: 'Read the state of the server: its process, kernels, runs, streams, store and limits',
      description: `Covers all workspaces. ${NEEDS_SCOPE}`,
      ...OF_SERVER,
      whileDraining: true,
      async handle({ holder }) {
        requireObserver(holder);
        return ok(await state());
      },
    }),
    defineRoute({
      ...OPERATIONS.followServer,
      summary: 'Follow the load of the server',
      description:
        'Sends server-sent events: `server.snapshot` with the constant facts, `server.replayed`, and then `server.load` ' +
        'every two seconds. The load is measured once for all subscribers, and only while somebody subscribes. Heartbeats are ' +
        `comments. ${NEEDS_SCOPE}`,
      ...OF_SERVER,
      handle({ holder }) {
        requireObserver(holder);
        return stream(follow);
      },
    }),
    defineRoute({
      ...OPERATIONS.getServerLog,
      summary: 'Read the last lines of the log of the server',
      description: `Covers all workspaces since the start; the lines are as the server wrote them. ${NEEDS_SCOPE}`,
      ...OF_SERVER,
      whileDraining: true,
      async handle({ holder }) {
        requireObserver(holder);
        return ok(await log());
      },
    }),
    defineRoute({
      ...OPERATIONS.listKernels,
      summary: 'List the kernels of the workspace with the processor time and memory that they use',
      description:
        'All readers share one measurement of the processes, which may be five seconds old: `sampledAt` has its time. So a kernel that has just ' +
        'started may be missing, and a kernel that has just ended may still be listed.',
      tags: ['Operations'],
      access: { action: 'inspect.read' },
      homeOf: () => undefined, // every worker asks the others
      handle: async ({ principal, query }) => ok(await kernels(principal.workspaceId, query)),
    }),
  ];
}

/** Throws `missing_scope` when the token does not allow reading the state of the whole server. */
function requireObserver({ scopes, isBound }: TokenHolder): void {
  if (!scopes.includes(SCOPE))
    throw new AppError('missing_scope', `The access token lacks the scope ${SCOPE}.`);
  if (isBound)
    throw new AppError(
      'missing_scope',
      'A token that is bound to a workspace may not read the state of the whole server.',
    );
}
