import type {
  Actor,
  ActorDetail,
  ActorFilters,
  ActorPage,
  ActorStreamEvent,
  Chart,
} from '#src/wire/actor.ts';
import type { AuditEntry } from '#src/wire/audit.ts';
import type { AuditFilters } from '#src/wire/finding.ts';
import type { Health, Readiness } from '#src/wire/health.ts';
import type { KernelList, ServerLog, ServerState, ServerStreamEvent } from '#src/wire/server.ts';
import type { Page } from '#src/wire/shape.ts';
import type { WorkspaceUsage } from '#src/wire/usage.ts';
import { type Connection, path, type RequestOptions } from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** What to follow of actors. */
interface ActorChoice {
  readonly kind?: string | undefined;
  /** Only the actor of this kind with this id. */
  readonly id?: string | undefined;
  /** Without moves: how many actors there are in each state, and what they refuse. */
  readonly moves?: boolean | undefined;
}

/** Which kernels to list. */
interface KernelChoice {
  readonly sessionId?: string | undefined;
  readonly limit?: number | undefined;
}

/** The server as a whole. */
export function operations(connection: Connection) {
  const audit = ({ signal, ...query }: PageOptions & AuditFilters = {}) =>
    connection.json<Page<AuditEntry>>({ method: 'GET', path: '/api/v3/audit', query, signal });
  const actors = ({ signal, ...query }: PageOptions & ActorFilters = {}) =>
    connection.json<ActorPage>({ method: 'GET', path: '/api/v3/actors', query, signal });
  return {
    /** Resolves with a page of the workspace's audit entries. Only owners may read them. */
    audit,
    eachAudited: (options: PageOptions & AuditFilters = {}) => eachItem(audit, options),
    /** Resolves with a page of the environments, sessions and runs of the workspace that are in memory. */
    actors,
    eachActor: (options: PageOptions & ActorFilters = {}) =>
      eachItem<Actor, PageOptions & ActorFilters>(actors, options),
    /** Resolves with what an actor does, takes and refuses. Restores and wakes nothing. */
    actor: (kind: string, id: string, options: RequestOptions = {}) =>
      connection.json<ActorDetail>({ method: 'GET', path: path`/api/v3/actors/${kind}/${id}`, ...options }),
    /** Yields what happens to the actors of the workspace, across reconnects: first their counts, then live events. */
    followActors: ({ kind, id, moves, ...options }: FollowOptions & ActorChoice = {}) =>
      followEvents<ActorStreamEvent>(connection, '/api/v3/actors/events', {
        ...options,
        query: { kind, id, moves },
      }),
    chart: (machine: string, options: RequestOptions = {}) =>
      connection.json<Chart>({ method: 'GET', path: path`/api/v3/charts/${machine}`, ...options }),
    /** Resolves with what the workspace takes on the disk of the server. */
    usage: (options: RequestOptions = {}) =>
      connection.json<WorkspaceUsage>({ method: 'GET', path: '/api/v3/usage', ...options }),
    /** Resolves with the state of the whole server. Needs a token with the scope `server:observe`. */
    server: (options: RequestOptions = {}) =>
      connection.json<ServerState>({ method: 'GET', path: '/api/v3/server', ...options }),
    /** Yields the load of the server every two seconds, across reconnects. Needs the same scope. */
    followServer: (options: FollowOptions = {}) =>
      followEvents<ServerStreamEvent>(connection, '/api/v3/server/events', options),
    /** Resolves with the last lines of the server's log. Needs the same scope. */
    serverLog: (options: RequestOptions = {}) =>
      connection.json<ServerLog>({ method: 'GET', path: '/api/v3/server/log', ...options }),
    /** Resolves with the metrics as OpenMetrics text. Needs the same scope. */
    metrics: async (options: RequestOptions = {}) => {
      const { bytes } = await connection.bytes({ method: 'GET', path: '/metrics', ...options });
      return new TextDecoder().decode(bytes);
    },
    /** Resolves with the kernels of the workspace and what they use, the one with the most memory first. */
    kernels: ({ signal, ...query }: RequestOptions & KernelChoice = {}) =>
      connection.json<KernelList>({ method: 'GET', path: '/api/v3/kernels', query, signal }),
    openapi: (options: RequestOptions = {}) =>
      connection.json<Readonly<Record<string, unknown>>>({
        method: 'GET',
        path: '/api/v3/openapi.json',
        ...options,
      }),
    health: (options: RequestOptions = {}) =>
      connection.json<Health>({ method: 'GET', path: '/healthz', ...options }),
    /** Rejects with the status 503 while the server starts or drains. */
    readiness: (options: RequestOptions = {}) =>
      connection.json<Readiness>({
        method: 'GET',
        path: '/readyz',
        ...options,
      }),
  };
}
