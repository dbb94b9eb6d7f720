/**
 * One declaration per operation: the request it takes, the answers it gives, who may call it, and the handler. The
 * server mounts it, the edge checks requests against it, and the OpenAPI document is made from it.
 */
import type { Static, TObject, TSchema, TUndefined } from 'typebox';
import type { ErrorCode } from '#src/core/errors.ts';
import type { Principal } from '#src/core/principal.ts';
import type { Reply } from './reply.ts';

/** Of routes that set no limit of their own. */
export const DEFAULT_BODY_LIMIT_BYTES = 1024 * 1024;

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
export type Access = 'public' | { readonly action: string };

export interface ResponseSpec {
  readonly description: string;
  /** Of the JSON body; for `text/event-stream` of the JSON in each `data:` line. */
  readonly schema?: TSchema;
  /** `application/json` unless said otherwise: several where the request decides, a media range where the content does. */
  readonly contentType?: string | readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request as its handler sees it. Everything is copied: it outlives the connection. */
export interface Exchange<Params extends string, Headers extends string, Query, Body, Caller> {
  readonly principal: Caller;
  /** Plausible ids, percent-decoded. */
  readonly params: Readonly<Record<Params, string>>;
  /** The request headers that the route names; empty when absent. */
  readonly headers: Readonly<Record<Headers, string>>;
  readonly query: Query;
  readonly body: Body;
  /** A HEAD request: the body of the answer is counted and not sent. */
  readonly headOnly: boolean;
  readonly requestId: string;
  /** Of the connection, as text, where the route is audited; else empty. */
  readonly remoteAddress: string;
  /** Aborts when the client leaves before it was answered. Made on first use. */
  readonly signal: AbortSignal;
}

/** An exchange of any route: what a handler receives once its own types are forgotten. */
export type AnyExchange = Exchange<string, string, unknown, unknown, Principal | undefined>;

interface Declaration<Path extends string, A extends Access, Headers extends string> {
  readonly method: Method;
  readonly path: Path;
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly tags: readonly string[];
  readonly access: A;
  /** Request headers the handler reads, lower case, each with its description. */
  readonly headers?: Readonly<Record<Headers, string>>;
  /** Of a larger body nothing is parsed: 413. */
  readonly bodyLimitBytes?: number;
  /** A browser may only call it from a page of this server. */
  readonly sameOrigin?: boolean;
  /** The handler notes who did what, from where. */
  readonly audited?: boolean;
  /** The answer holds a secret: a receipt of it is sealed for its caller. */
  readonly secretAnswer?: boolean;
  /** Answered even while the server drains. */
  readonly whileDraining?: boolean;
  readonly responses: Readonly<Record<number, ResponseSpec>>;
  /** The codes it can answer with beside those any operation can. */
  readonly errors?: readonly ErrorCode[];
}

export interface RouteSpec<
  Path extends string,
  A extends Access,
  Headers extends string,
  Query extends TSchema,
  Body extends TSchema,
  Optional extends boolean,
> extends Declaration<Path, A, Headers> {
  /** An object of strings, integers, booleans and enums. A property with a `default` may be left out. */
  readonly query?: Query & TObject;
  readonly body?: Body;
  /** The body may be left out; the handler then sees `undefined`. */
  readonly optionalBody?: Optional;
  handle(
    exchange: Exchange<
      ParamNames<Path>,
      Headers,
      Static<Query>,
      Static<Body> | (Optional extends true ? undefined : never),
      A extends 'public' ? undefined : Principal
    >,
  ): Reply | Promise<Reply>;
}

/** A declared operation, its own types forgotten. */
export interface Route extends Declaration<string, Access, string> {
  readonly query?: TObject;
  readonly body?: TSchema;
  readonly optionalBody?: boolean;
  handle(exchange: AnyExchange): Reply | Promise<Reply>;
}

type ParamNames<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer Tail}`
    ? Name | ParamNames<Tail>
    : Rest
  : never;

/** The names of the parameters of a path, in their order. */
export function paramNamesOf(path: string): string[] {
  return [...path.matchAll(/:(\w+)/g)].map((match) => match[1]!);
}

/** Declares one operation; the types of `handle`'s exchange follow from the path and the schemas. */
export function defineRoute<
  const Path extends string,
  const A extends Access,
  Headers extends string = never,
  Query extends TSchema = TUndefined,
  Body extends TSchema = TUndefined,
  const Optional extends boolean = false,
>(spec: RouteSpec<Path, A, Headers, Query, Body, Optional>): Route {
  return spec;
}
