import type { ActorFilters, ActorStreamEvent } from '../wire/actor.ts';
import type { AuditFilters } from '../wire/lists.ts';
import { pathOf } from '../wire/paths.ts';
import type { ServerStreamEvent } from '../wire/server.ts';
import type { Connection, RequestOptions } from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { bytesCallOf, callOf, operation, pagesOf } from './operation.ts';
import type { PageOptions } from './paging.ts';

/** Which actors to follow. */
export interface ActorChoice {
  readonly kind?: string | undefined;
  /** Chooses the one actor of this kind with this id. */
  readonly id?: string | undefined;
  /** False for a stream without moves: it has the number of actors in each state, and refusals. */
  readonly moves?: boolean | undefined;
}

/** Which page of the tokens of models, of which UTC days: `2026-06-01`. */
export interface UsageChoice extends PageOptions {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** Which kernels to list. */
export interface KernelChoice {
  readonly sessionId?: string | undefined;
  readonly limit?: number | undefined;
}

/** The server as a whole. */
export function operations(connection: Connection) {
  const audit = pagesOf<'listAudit', PageOptions & AuditFilters>(connection, 'listAudit');
  const actors = pagesOf<'inspectActors', PageOptions & ActorFilters>(connection, 'inspectActors');
  return {
    /** Resolves with a page of the workspace's audit entries. Only owners may read them. */
    audit: audit.list,
    eachAudited: audit.each,
    /** Resolves with a page of the environments, sessions and runs of the workspace that are in memory. */
    actors: actors.list,
    eachActor: actors.each,
    /** Resolves with the state of an actor and the events that it takes and refuses. Restores and wakes nothing. */
    actor: callOf(connection, 'inspectActor'),
    /** Yields the events of the workspace's actors, across reconnects: first their counts, then live events. */
    followActors: ({ kind, id, moves, ...options }: FollowOptions & ActorChoice = {}) =>
      followEvents<ActorStreamEvent>(connection, pathOf('followActors', {}), {
        ...options,
        query: { kind, id, moves },
      }),
    chart: callOf(connection, 'getChart'),
    /** Resolves with the disk space that the workspace uses on the server, and a page of the tokens of models. */
    usage: ({ signal, ...query }: UsageChoice = {}) =>
      connection.json(operation('getUsage', { query, signal })),
    /** Resolves with the state of the whole server. Needs a token with the scope `server:observe`. */
    server: callOf(connection, 'getServer'),
    /** Yields the load of the server every two seconds, across reconnects. Needs the same scope. */
    followServer: (options: FollowOptions = {}) =>
      followEvents<ServerStreamEvent>(connection, pathOf('followServer', {}), options),
    /** Resolves with the last lines of the server's log. Needs the same scope. */
    serverLog: callOf(connection, 'getServerLog'),
    /** Resolves with the metrics as OpenMetrics text. Needs the same scope. */
    metrics: async (options: RequestOptions = {}) => {
      const { bytes } = await bytesCallOf(connection, 'getMetrics')(options);
      return new TextDecoder().decode(bytes);
    },
    /** Resolves with the kernels of the workspace and their use of resources, the one with the most memory first. */
    kernels: ({ signal, ...query }: RequestOptions & KernelChoice = {}) =>
      connection.json(operation('listKernels', { query, signal })),
    openapi: callOf(connection, 'getOpenApi'),
    health: callOf(connection, 'getHealth'),
    /** Rejects with the status 503 while the server starts or drains. */
    readiness: callOf(connection, 'getReadiness'),
  };
}
