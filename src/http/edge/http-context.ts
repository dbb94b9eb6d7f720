import type { SentPageCredential } from '#src/base/caller/page-access.ts';
import type { Auth, Principal } from '#src/base/caller/principal.ts';
import type { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { Tracer } from '#src/base/tracing/tracer.ts';
import type {
  AnswerEvents,
  ForwardedHandler,
  ForwardedHead,
  ForwardedRequest,
} from '#src/cluster/peers/forwarding.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import type { LimitOf } from '#storage/records/workspace-limits.ts';
import type { WorkspacePermits } from '#storage/workspace-permits.ts';
import type { Idempotency } from '../idempotency/idempotency.ts';
import type { ErrorLog } from '../reply/problem.ts';
import type { AnswerPlaces } from './answer-places.ts';
import type { AuthThrottle } from './auth-throttle.ts';
import type { BodyMemory } from './body-memory.ts';
import type { ClientAddressOf } from './client-address.ts';
import type { AllowedOriginOf } from './cors.ts';
import type { OpenRequests } from './open-requests.ts';
import type { RequestLog } from './request-log.ts';
import type { WorkspaceTurns } from './workspace-turns.ts';

/** A socket that is bound to a port and on which several processes listen. */
export interface SharedSocket {
  readonly port: number;
  readonly descriptor: number;
  /** The descriptor of the unix socket for proxies, if the server has one. */
  readonly proxies?: number | undefined;
}

/** Where requests are carried out, in a server of several workers. */
export interface Forwarding {
  /** Makes the commits of the other workers visible. */
  refresh(): void;
  /**
   * Returns the slot of a notebook or conversation (`id`), of a workspace, or of the server (`'*'`), that is at home in another
   * worker; undefined when it is here.
   */
  elsewhere(workspaceId: string, id?: string): number | undefined;
  /** Returns the slot of the session to which a ticket for an event stream belongs; undefined when the session is at home here. */
  elsewhereByTicket(ticket: string): number | undefined;
  forward(head: ForwardedHead, body: Uint8Array, events: AnswerEvents): ForwardedRequest;
  /**
   * Lets other workers forward requests here; `handle` carries them out. Resolves with the socket on which to listen for clients.
   * `busyHomes` yields the notebooks, conversations and workspaces of open requests and streams, some of them more than once.
   */
  join(handle: ForwardedHandler, busyHomes: () => Iterable<Home>): Promise<SharedSocket>;
}

/** Permits for event streams of workspaces. */
export type StreamPermits = Pick<WorkspacePermits, 'take'>;

/** The store, as requests use it. */
export interface StoreOfRequests {
  /** While the store is full, requests that would store something new answer 507. */
  readonly isFull: boolean;
  /** Runs a handler in a shared turn. */
  decide(decision: () => void): void;
  /** Runs a read. `uncommitted` resolves once everything the read saw is on disk; the reply to a GET waits for it. */
  observe<T, Of extends unknown[]>(
    read: (...of: Of) => T,
    ...of: Of
  ): { readonly result: T; readonly uncommitted: Promise<void> | undefined };
}

/** The parts of the server that the HTTP server depends on. */
export interface HttpDependencies {
  readonly auth: Auth;
  readonly log: ErrorLog;
  /**
   * Returns a promise that resolves once everything this turn of the event loop wrote is on disk, or undefined when
   * nothing is waiting. The reply to every mutation waits for it.
   */
  readonly durable: () => Promise<void> | undefined;
  /** The requests and streams still open. */
  readonly open: OpenRequests;
  /** Where handlers read and write. */
  readonly store: StoreOfRequests;
  readonly idempotency: Idempotency;
  /** The address at which browsers reach this server, if it is configured. */
  readonly publicUrl: string | undefined;
  /** While the server is draining, every route but the health checks answers 503. Open event streams continue. */
  readonly phase: { readonly isDraining: boolean };
  /** Whether the server only reads: requests that would change something answer 503. */
  readonly readOnly: boolean;
  /** Returns how many event streams a workspace may have open at once; 0 means any number. */
  readonly streamsPerWorkspace: LimitOf;
  /**
   * Opens the permits for event streams of a server of several workers; undefined with one. `inUse` returns how many streams a
   * workspace has open here.
   */
  readonly openStreamPermits: (inUse: (workspaceId: string) => number) => StreamPermits | undefined;
  /** The interval at which a deferred reply sends white space while its value is awaited. */
  readonly heartbeatMs: number;
  /** How many processes serve. Each throttles its share of wrong tokens. */
  readonly workers: number;
  readonly requestLog: RequestLog;
  /** The metrics of requests; undefined when nothing is counted. */
  readonly metrics: ServerMetrics | undefined;
  /** Records spans of requests; undefined when nothing is traced. */
  readonly tracer: Tracer | undefined;
  /** Addresses and networks of proxies whose `X-Forwarded-For` is believed. */
  readonly trustedProxies: readonly string[];
  /** Whether notebook code has the network of this machine, so that no address of this machine is a proxy's alone. */
  readonly sharesNetwork: boolean;
  /** Returns the caller of a ticket for an event stream and uses it up. Throws `unauthenticated`. */
  readonly redeemTicket: (
    ticket: string,
    purpose: { readonly action: string; readonly sessionId: string },
  ) => Principal;
  readonly pageTokens: {
    /** Returns the caller of a page of a notebook. Throws `unauthenticated`. */
    principalOf(credential: SentPageCredential): Principal;
  };
  /** Undefined in a server of one process. */
  readonly forwarding: Forwarding | undefined;
  /** Origins whose pages may read answers, such as `https://app.example`. */
  readonly corsOrigins: readonly string[];
}

/** The dependencies, and the objects that all requests of one server share. */
export interface HttpContext extends HttpDependencies {
  readonly streamPermits: StreamPermits | undefined;
  readonly turns: WorkspaceTurns;
  readonly bodies: BodyMemory;
  readonly answers: BodyMemory;
  readonly answerPlaces: AnswerPlaces;
  readonly authThrottle: AuthThrottle;
  readonly clientAddress: ClientAddressOf;
  /** Returns the origin whose pages may read an answer; undefined when pages of other origins never may. */
  readonly allowedOrigin: AllowedOriginOf | undefined;
}
