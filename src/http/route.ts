/**
 * The declaration of an operation: its request, its responses, its permission and its handler. The server mounts the operation,
 * admission checks requests against the declaration, and the OpenAPI document is made from it.
 */
import type { Static, TSchema, TUndefined } from 'typebox';
import type { PageCredential } from '#src/base/caller/page-access.ts';
import type { Principal, TokenHolder } from '#src/base/caller/principal.ts';
import type { ErrorCode } from '#src/base/errors/errors.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { QuerySchema, ResponseSpec } from '#src/contract/wire/operations/operation.ts';
import type { Method, ParamNames } from '#src/contract/wire/paths.ts';
import type { Wire } from '#src/contract/wire/shape.ts';
import type { BytesReply, EmptyReply, Reply } from './reply/reply.ts';

/** The cookie of a notebook's page. */
export const PAGE_COOKIE = 'troupe-page';

/** The body limit of routes that set none of their own. */
export const DEFAULT_BODY_LIMIT_BYTES = 1024 * 1024;

/** The callers that a route accepts. `token`: every holder of a valid access token, in any workspace. */
export type RouteAccess = 'public' | 'token' | { readonly action: string };

/** A request as its handler sees it. All parts are copies, so the request outlives its connection. */
export interface RouteRequest<
  Params extends string,
  Headers extends string,
  Query,
  Body,
  Caller,
  Holder = undefined,
> {
  readonly principal: Caller;
  /** The caller of a route whose access is `token`. */
  readonly holder: Holder;
  /**
   * The parameters of the path: percent-decoded, with the characters and length of an id. A parameter that ends in `*` is the rest
   * of the path, including slashes, with any text.
   */
  readonly params: Readonly<Record<Params, string>>;
  /** The request headers that the route declares; a missing one is the empty string. */
  readonly headers: Readonly<Record<Headers, string>>;
  readonly query: Query;
  readonly body: Body;
  /** The body as it arrives, for a route that takes bytes. The body can be read once. For other routes it is empty. */
  readonly content: AsyncIterable<Uint8Array>;
  /** Whether the request is HEAD: then the length of the body is sent, but not the body. */
  readonly headOnly: boolean;
  readonly requestId: string;
  /** The trace to which the work of the request belongs; undefined when the request is not traced. */
  readonly trace: TraceContext | undefined;
  /** The client's IP address if the route is audited; otherwise empty. */
  readonly remoteAddress: string;
  /** The idempotency key of a POST that has one. */
  readonly idempotencyKey?: string | undefined;
  /** Aborts when the client leaves before it has the reply. */
  readonly signal: AbortSignal;
}

/** The request of any route, without the types of its own schemas. */
export type AnyRouteRequest = RouteRequest<
  string,
  string,
  unknown,
  unknown,
  Principal | undefined,
  TokenHolder | undefined
>;

/**
 * The subject of a request: a notebook or conversation by its id, or without an id the workspace. Undefined when the named object
 * is unknown. The request is then answered by the worker that received it.
 */
export type RequestHome = { readonly id: string | undefined } | undefined;

interface Declaration<Path extends string, A extends RouteAccess, Headers extends string> {
  readonly method: Method;
  readonly path: Path;
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly access: A;
  /** The request headers that the handler reads, in lower case, each with its description. */
  readonly headers?: Readonly<Record<Headers, string>>;
  /** The headers among these that a request must have. */
  readonly requiredHeaders?: readonly NoInfer<Headers>[];
  /** Whether the body is bytes of any type, which the handler reads as they arrive, in place of JSON. */
  readonly takesBytes?: boolean;
  /** A larger body is refused with 413 and not parsed. Defaults to 1 MiB. */
  readonly bodyLimitBytes?: number;
  /** Whether the request needs an access token in its header, so that the cookie of a sign-in is not enough. */
  readonly tokensOnly?: boolean;
  /** Whether browsers may call the route only from a page of this server. */
  readonly sameOrigin?: boolean;
  /** Whether an `Idempotency-Key` is ignored, because the reply is a stream or the request only makes other requests. */
  readonly ignoresKeys?: boolean;
  /** Whether the handler writes an audit entry, which includes the client's address. A function decides by the path's parameters. */
  readonly audited?: boolean | ((params: Readonly<Record<string, string>>) => boolean);
  /** Whether the reply holds a secret: its idempotency record is then encrypted with the caller's credential. */
  readonly secretAnswer?: boolean;
  /**
   * Whether the handler reads only the store and no state in memory. In a cluster, any worker then answers the request; other
   * requests are answered by their home. A function decides for each query.
   */
  readonly readsStoreOnly?: boolean | ((query: Readonly<Record<string, unknown>>) => boolean);
  /**
   * The worker that carries out the request in a cluster. If absent: the home of the notebook or conversation that the path names
   * (`:notebookId`, `:sessionId`) or `homeOf` returns, or else the home of the caller's workspace. `workspace`: the home of the
   * caller's workspace, although the path names a notebook. `named-workspace`: the home of the workspace that the path names.
   * `server`: the request changes the server as a whole, so one worker decides it for all workspaces. `any`: the worker that
   * receives the request, because the request only makes other requests.
   */
  readonly home?: 'workspace' | 'named-workspace' | 'server' | 'any';
  /** Whether `homeOf` reads the body, so that the home is known only once the body has been checked. */
  readonly homeInBody?: boolean;
  /**
   * Whether the handler runs in a shared turn (`Store.decide`), because several workers may decide about the same object at once.
   * Work that has to be awaited belongs in `prepare`.
   */
  readonly sharedTurn?: boolean;
  /**
   * The credential of a notebook's page that identifies the caller, for routes that do not use an
   * access token. The path names the notebook (`:notebookId`), and the code, if that is the
   * credential (`:code`).
   */
  readonly credential?: PageCredential;
  /**
   * Whether pages without an origin may call the route and read its replies. Such a route takes no credential that a browser
   * sends by itself.
   */
  readonly anyOrigin?: boolean;
  /**
   * Whether people open the route in a browser by a link. Such a route ignores unknown parameters, because a link may have some.
   */
  readonly isPage?: boolean;
  /** Whether the OpenAPI document leaves the route out: it is a page or a file of a page, or speaks a protocol of its own. */
  readonly isUndocumented?: boolean;
  /** Whether the route is answered while the server drains. */
  readonly whileDraining?: boolean;
  /**
   * Whether the route is carried out while the disk is full, because it stores nothing new or ends something. Every GET and
   * DELETE is carried out then; other requests are refused with 507.
   */
  readonly whileFull?: boolean;
  /**
   * Whether a server that only reads (TROUPE_READ_ONLY) carries the route out, because the route stores nothing. Such a server
   * carries out every GET, and refuses other requests with 503.
   */
  readonly whileReadOnly?: boolean;
  /**
   * Whether the answer may have more than a MiB, for example a stored record. The handler then has one of the places for large
   * answers (`answer-places.ts`), so it must not wait for anything except its own work.
   */
  readonly largeAnswer?: boolean;
  /** Codes of the errors that the handler may throw. Admission has further errors of its own. */
  readonly errors?: readonly ErrorCode[];
}

export interface RouteSpec<
  Path extends string,
  A extends RouteAccess,
  Headers extends string,
  Query extends TSchema,
  Body extends TSchema,
  Optional extends boolean,
  Responses extends Readonly<Record<number, ResponseSpec>>,
> extends Declaration<Path, A, Headers> {
  /** An object of strings, integers, booleans and enums. A property with a `default` may be omitted. */
  readonly query?: Query & QuerySchema;
  readonly body?: Body;
  /** Whether the body may be omitted. For a request without a body, the handler gets `undefined`. */
  readonly optionalBody?: Optional;
  /** The responses by status. The compiler checks that the JSON of the handler matches one of their schemas. */
  readonly responses: Responses;
  /**
   * Throws when the caller may not use the object that the request names. Handlers check that themselves. This function guards
   * the stored reply to an earlier request, because the caller may have lost the right since then.
   */
  checkAccess?(request: RequestOf<Path, A, Headers, Query, Body, Optional>): void;
  /**
   * Returns the notebook or conversation that the request is about, for a path that does not name it. All workers that know the
   * object must return the same id.
   */
  homeOf?(request: RequestOf<Path, A, Headers, Query, Body, Optional>): RequestHome;
  /**
   * Resolves once the handler can decide without waiting, which a handler in a shared turn must do. Returns undefined when
   * nothing has to be awaited. Throws or rejects when the request is refused. A repeated request that gets a stored reply is not
   * prepared. The caller's right is checked again before the handler begins. A wait must end soon after the signal of the request
   * aborts.
   */
  prepare?(request: RequestOf<Path, A, Headers, Query, Body, Optional>): Promise<void> | undefined;
  /**
   * Returns the reply to a retry with the same idempotency key, if that reply differs from `first`, the reply to the first
   * request. The work of the request is not done again.
   */
  resume?(request: RequestOf<Path, A, Headers, Query, Body, Optional>, first: BytesReply | EmptyReply): Reply;
  handle(
    request: RequestOf<Path, A, Headers, Query, Body, Optional>,
  ): Reply<BodyOf<Responses>> | Promise<Reply<BodyOf<Responses>>>;
  /** Handles a request without a valid credential of a page, which would otherwise be refused. Such a request has no home. */
  handleStranger?(
    request: RequestOf<Path, 'public', Headers, Query, Body, Optional>,
  ): Reply<BodyOf<Responses>> | Promise<Reply<BodyOf<Responses>>>;
}

type RequestOf<
  Path extends string,
  A extends RouteAccess,
  Headers extends string,
  Query extends TSchema,
  Body extends TSchema,
  Optional extends boolean,
> = RouteRequest<
  ParamNames<Path>,
  Headers,
  Static<Query>,
  Static<Body> | (Optional extends true ? undefined : never),
  A extends 'public' | 'token' ? undefined : Principal,
  A extends 'token' ? TokenHolder : undefined
>;

/** The JSON bodies that the responses describe; unknown when none has a schema. */
type BodyOf<Responses> = [DescribedBody<Responses>] extends [never] ? unknown : DescribedBody<Responses>;

type DescribedBody<Responses> = {
  [Status in keyof Responses]: Responses[Status] extends { readonly schema: infer Schema extends TSchema }
    ? Wire<Schema>
    : never;
}[keyof Responses];

/** A declared operation, without the types of its own schemas. */
export interface Route extends Declaration<string, RouteAccess, string> {
  readonly query?: QuerySchema;
  readonly body?: TSchema;
  readonly optionalBody?: boolean;
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  checkAccess?(request: AnyRouteRequest): void;
  homeOf?(request: AnyRouteRequest): RequestHome;
  prepare?(request: AnyRouteRequest): Promise<void> | undefined;
  resume?(request: AnyRouteRequest, first: BytesReply | EmptyReply): Reply;
  handle(request: AnyRouteRequest): Reply | Promise<Reply>;
  handleStranger?(request: AnyRouteRequest): Reply | Promise<Reply>;
}

const ABSENT: { readonly [Name in keyof Required<Route>]: undefined } = {
  method: undefined,
  path: undefined,
  operationId: undefined,
  summary: undefined,
  description: undefined,
  tags: undefined,
  access: undefined,
  headers: undefined,
  requiredHeaders: undefined,
  takesBytes: undefined,
  bodyLimitBytes: undefined,
  tokensOnly: undefined,
  sameOrigin: undefined,
  ignoresKeys: undefined,
  audited: undefined,
  secretAnswer: undefined,
  readsStoreOnly: undefined,
  home: undefined,
  homeInBody: undefined,
  sharedTurn: undefined,
  credential: undefined,
  anyOrigin: undefined,
  isPage: undefined,
  isUndocumented: undefined,
  whileDraining: undefined,
  whileFull: undefined,
  whileReadOnly: undefined,
  largeAnswer: undefined,
  errors: undefined,
  query: undefined,
  body: undefined,
  optionalBody: undefined,
  responses: undefined,
  checkAccess: undefined,
  homeOf: undefined,
  prepare: undefined,
  resume: undefined,
  handle: undefined,
  handleStranger: undefined,
};

/**
 * Returns the route as an object with all properties in one order. Each request reads some twenty properties, and V8 reads them
 * fastest when all routes have the same ones. Declarations have only the properties that they need.
 */
export function withOneShape(route: Route): Route {
  return Object.assign({ ...ABSENT }, route);
}

/** Returns the names of the parameters of a path, in order. */
export function paramNamesOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map((match) => match[1]!);
}

/**
 * Returns the parameter at the end of a path that takes the rest of the path, and the part before it; undefined when there is no
 * such parameter.
 */
export function openEndOf(path: string): { readonly name: string; readonly before: string } | undefined {
  const [, before, name] = /^(.*):(\w+)\*$/.exec(path) ?? [];
  return before === undefined || name === undefined ? undefined : { name, before };
}

/** Returns a path with its parameters filled in. A parameter that is missing becomes empty. */
export function pathWith(path: string, params: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+)\*?/g, (_, name: string) => encodeURI(params[name] ?? ''));
}

/** Declares one operation. The type of the handler's request follows from the path and the schemas. */
export function defineRoute<
  const Path extends string,
  const A extends RouteAccess,
  Headers extends string = never,
  Query extends TSchema = TUndefined,
  Body extends TSchema = TUndefined,
  const Optional extends boolean = false,
  const Responses extends Readonly<Record<number, ResponseSpec>> = Readonly<Record<number, ResponseSpec>>,
>(spec: RouteSpec<Path, A, Headers, Query, Body, Optional, Responses>): Route {
  return spec;
}

/** Returns whether the operation is refused while the disk is full. */
export function needsRoom({ method, whileFull }: Pick<Route, 'method' | 'whileFull'>): boolean {
  return method !== 'GET' && method !== 'DELETE' && whileFull !== true;
}

/** Returns whether a server that only reads refuses the operation. */
export function changesData({ method, whileReadOnly }: Pick<Route, 'method' | 'whileReadOnly'>): boolean {
  return method !== 'GET' && whileReadOnly !== true;
}
