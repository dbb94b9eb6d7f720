/**
 * Requests and calls of operations: method and path come from the table of the API, the types of the rest from its schemas. A method
 * that says nothing of its own is made by `callOf` and its like.
 */
import type { AnswerOf, BodyOf, HeaderOf, QueryOf, SuccessOf } from '../wire/operations/payloads.ts';
import {
  addressOf,
  filledPath,
  type MethodOf,
  type OperationId,
  type ParamsOf,
  type PathOf,
} from '../wire/paths.ts';
import type { Page } from '../wire/shape.ts';
import type {
  Connection,
  OutgoingRequest,
  PostOptions,
  ReadOptions,
  RequestOptions,
  WriteOptions,
} from './connection.ts';
import type { PageOptions } from './paging.ts';

/** The parts of a request that the operation decides. */
type Parts<Id extends OperationId> = { readonly query?: QueryOf<Id> } & ([keyof ParamsOf<Id>] extends [never]
  ? unknown
  : { readonly params: ParamsOf<Id> }) &
  BodyOf<Id>;

type Further = Omit<OutgoingRequest, 'method' | 'path' | 'query' | 'body' | 'answer'>;

/**
 * Returns the request of an operation; its path has the parameters percent-encoded. The answer has the types of the successful
 * responses, or of the one with `Status`.
 */
export function operation<Id extends OperationId, Status extends SuccessOf<Id> = SuccessOf<Id>>(
  id: Id,
  request: Parts<Id> & Further,
): OutgoingRequest<AnswerOf<Id, Status>>;
export function operation(
  id: OperationId,
  { params = {}, ...request }: Further & { readonly params?: Readonly<Record<string, string>> },
): OutgoingRequest {
  const { method, path } = addressOf(id);
  return { ...request, method, path: filledPath(path, params) };
}

/** The names of arguments in editors, which a tuple cannot compute. An argument for another parameter is called `id`. */
interface Labels {
  readonly sessionId: [sessionId: string];
  readonly notebookId: [notebookId: string];
  readonly environmentId: [environmentId: string];
  readonly runId: [runId: string];
  readonly jobId: [jobId: string];
  readonly assetId: [assetId: string];
  readonly workspaceId: [workspaceId: string];
  readonly userId: [userId: string];
  readonly tokenId: [tokenId: string];
  readonly keyId: [keyId: string];
  readonly slug: [slug: string];
  readonly subject: [subject: string];
  readonly name: [name: string];
  readonly version: [version: string];
  readonly provider: [provider: string];
  readonly node: [node: string];
  readonly kind: [kind: string];
  readonly machine: [machine: string];
}

/** The arguments for the parameters of a path, in their order. */
type PathArguments<Path extends string> = Path extends `${string}:${infer Rest}`
  ? Rest extends `${infer Name}/${infer Tail}`
    ? [...Labelled<Name>, ...PathArguments<Tail>]
    : Labelled<Rest>
  : [];

type Labelled<Name extends string> = Name extends keyof Labels ? Labels[Name] : [id: string];

/** The options of an operation's call: a POST takes an idempotency key, a change of a record that has entity tags such a tag. */
type OptionsOf<Id extends OperationId> =
  MethodOf<Id> extends 'POST' ? PostOptions : 'if-match' extends HeaderOf<Id> ? WriteOptions : RequestOptions;

/** The filters of a list in addition to the page. */
type FiltersOf<Id extends OperationId> = Omit<QueryOf<Id>, keyof PageOptions>;

type ListOptionsOf<Id extends OperationId> = keyof FiltersOf<Id> extends never
  ? PageOptions
  : PageOptions & FiltersOf<Id>;

type ItemOf<Id extends OperationId> = AnswerOf<Id> extends Page<infer Item> ? Item : never;

/** An operation whose requests need no body. */
type WithoutBody<Id extends OperationId> = object extends BodyOf<Id> ? Id : never;

/** Returns the call of an operation that needs no body. */
export function callOf<Id extends OperationId>(connection: Connection, id: WithoutBody<Id>) {
  type Arguments = [...PathArguments<PathOf<Id>>, options?: OptionsOf<Id>];
  return (...args: Arguments) => connection.json(requestOf<AnswerOf<Id>>(id, args));
}

/** Returns the call that reads a record with its entity tag. */
export function taggedCallOf<Id extends OperationId>(connection: Connection, id: WithoutBody<Id>) {
  type Arguments = [...PathArguments<PathOf<Id>>, options?: ReadOptions];
  return (...args: Arguments) => connection.tagged(requestOf<AnswerOf<Id>>(id, args));
}

/** Returns the call of an operation whose answer is bytes. */
export function bytesCallOf<Id extends OperationId>(connection: Connection, id: WithoutBody<Id>) {
  type Arguments = [...PathArguments<PathOf<Id>>, options?: RequestOptions];
  return (...args: Arguments) => connection.bytes(requestOf(id, args));
}

/** Returns the calls of a list: `list` for one page, and `each` for every item after `options.after`. */
export function pagesOf<Id extends OperationId, Options extends PageOptions = ListOptionsOf<Id>>(
  connection: Connection,
  id: WithoutBody<Id>,
) {
  type Arguments = [...PathArguments<PathOf<Id>>, options?: Options];
  /** Resolves with the page for these options; all but the signal are the query. */
  const page = ({ method, path, signal, ...query }: OutgoingRequest) =>
    connection.json<AnswerOf<Id>>({ method, path, signal, query: query as QueryOf<Id> });
  return {
    /** Resolves with one page. */
    list: (...args: Arguments) => page(requestOf(id, args)),
    /** Yields every item after `options.after`. Pages are requested as they are needed. */
    async *each(...args: Arguments): AsyncGenerator<ItemOf<Id>, void, undefined> {
      for (const request = requestOf<PageOptions>(id, args); ; ) {
        const { items, nextCursor } = (await page(request)) as Page<ItemOf<Id>>;
        yield* items;
        if (nextCursor === null) return;
        Object.assign(request, { after: nextCursor });
      }
    },
  };
}

/**
 * Returns the request of an operation for the arguments of its call: the parameters of its path, which it takes out of the list, and
 * options.
 */
function requestOf<Answer>(id: OperationId, args: unknown[]): OutgoingRequest<Answer> {
  const { method, path } = addressOf(id);
  const filled = path.replace(/:\w+/g, () => encodeURIComponent(args.shift() as string));
  return { ...Object(args[0]), method, path: filled };
}
