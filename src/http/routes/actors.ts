import { createHash } from 'node:crypto';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ActorDetail, ActorPage } from '#src/contract/wire/actor.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { ActorEvents } from '#src/runtime/actors/actor-events.ts';
import type { ActorQuery } from '#src/runtime/actors/actor-list.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { ChartState } from '#src/runtime/actors/chart.ts';
import type { RunReader } from '#src/runtime/runs/run-reader.ts';
import { json, ok, stream } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { homeOfRun } from './runs.ts';

const CURSOR = /^[\w-]+\/[\w-]+$/;

export interface ActorListing extends ActorQuery {
  /** Whether to list also actors that have recently ended or failed. */
  readonly ended: boolean;
}

/** The operators' view of the actors of all workers. Reading this view restores no actor and wakes no session. */
export interface ActorInspection {
  /** Resolves with a page. `silentWorkers` are the workers that did not answer in time. */
  list(
    workspaceId: WorkspaceId,
    query: ActorListing,
  ): Promise<ActorPage & { readonly silentWorkers?: number }>;
  /** Returns the state and recent events of an actor; undefined when there is no such actor. */
  detail(kind: string, id: ActorId): ActorDetail | undefined;
  /** Returns the definition of a chart by its id; undefined when there is none. */
  chart(machine: string): ChartState | undefined;
}

/** The actors of a workspace and their statecharts, for operators. */
export function actorRoutes(
  actors: ActorInspection,
  events: ActorEvents,
  runs: Pick<RunReader, 'homeOf'>,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.followActors,
      summary: 'Follow the events of the actors of the workspace',
      description:
        'Sends server-sent events: `actor.moved`, `actor.refused`, and `actor.left`, at most ten times a ' +
        'second. All events that an actor took since the last sending are combined into one, and so are repeated ' +
        'refusals of one command. The order is `actors.snapshot` with counts, the events that you missed, ' +
        '`actors.replayed`, and then live events. With the id of the last event that you received, the ' +
        'snapshot has `resumed: true` if the server still has all later events; without `resumed`, read the list ' +
        'again. Connect again after `actors.resync-required`. This event is also sent when a worker of the server ' +
        'has ended, because the actors of that worker have left memory. Heartbeats are comments. Only the ' +
        'types of actors’ events are sent, never their data.',
      tags: ['Operations'],
      access: { action: 'inspect.read' },
      errors: ['quota_exceeded'],
      async handle({ principal, headers, query }) {
        const lastEventId = headers['last-event-id'] || query.lastEventId;
        const { kind, id, moves } = query;
        if (id !== undefined && kind === undefined)
          throw new AppError('invalid_request', 'Name the `kind` of the actor, too.');
        return stream(await events.follow(principal.workspaceId, { kind, id, moves, lastEventId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.inspectActors,
      summary: 'List the live actors of the workspace',
      description:
        'The environments, sessions and runs that are in memory, by kind and id, with their state and the last events they ' +
        'received.',
      tags: ['Operations'],
      access: { action: 'inspect.read' },
      errors: ['invalid_cursor'],
      homeOf: () => undefined, // every worker asks the others
      async handle({ principal, query }) {
        if (query.after !== undefined && !CURSOR.test(query.after)) {
          throw new AppError('invalid_cursor', 'Pass the `nextCursor` of a page of this list.');
        }
        return ok(await actors.list(principal.workspaceId, query));
      },
    }),
    defineRoute({
      ...OPERATIONS.inspectActor,
      summary: 'Read the state of an actor, and the events that it takes and refuses',
      description:
        'Reading restores no actor and wakes no session. Only the types of events are shown, never their data.',
      tags: ['Operations'],
      access: { action: 'inspect.read' },
      homeOf({ principal, params: { kind, id } }) {
        if (kind === 'environment') return undefined; // every worker reads environments from the store
        return kind === 'run' ? homeOfRun(runs)({ principal, params: { runId: id } }) : { id };
      },
      handle({ principal, params }) {
        const detail = actors.detail(params.kind, { workspaceId: principal.workspaceId, id: params.id });
        if (detail === undefined) throw notFound();
        return ok(detail);
      },
    }),
    defineRoute({
      ...OPERATIONS.getChart,
      summary: 'Read the statechart of a kind of actor',
      description: 'If the request names the `version` of the chart, caches may keep the response for ever.',
      tags: ['Operations'],
      access: { action: 'inspect.read' },
      readsStoreOnly: true,
      handle({ params: { machine }, query }) {
        const root = actors.chart(machine);
        if (root === undefined) throw notFound();
        const version = createHash('sha256').update(JSON.stringify(root)).digest('hex').slice(0, 16);
        const isLasting = query.version === version;
        return json(
          200,
          { machine, version, root: { ...root } },
          { 'cache-control': isLasting ? 'private, max-age=31536000, immutable' : 'no-cache' },
        );
      },
    }),
  ];
}
