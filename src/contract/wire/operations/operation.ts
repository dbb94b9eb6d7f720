/** The declaration of an operation: the schemas of its request and its responses. */
import type { TObject, TSchema } from 'typebox';
import { addressOf, type MethodOf, type OperationId, type PathOf } from '../paths.ts';

export interface ResponseSpec {
  readonly description: string;
  /** The schema of the JSON body, or for `text/event-stream` of the JSON in each `data:` line. */
  readonly schema?: TSchema;
  /** Defaults to `application/json`. Several when the request decides, a media range when the content does. */
  readonly contentType?: string | readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** The schema of a query: an object, whose properties may all be optional. */
export type QuerySchema = Omit<TObject, 'required'> & { readonly required: readonly string[] | undefined };

export interface OperationSpec {
  /** Request headers that the operation reads, lower case, each with its description. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The headers without which the request is refused. */
  readonly requiredHeaders?: readonly string[];
  /** Whether the body is bytes of any type in place of JSON. */
  readonly takesBytes?: boolean;
  /** An object of strings, integers, booleans, enums, and lists of enums, whose values are separated by commas. A property with a `default` may be omitted. */
  readonly query?: QuerySchema;
  readonly body?: TSchema;
  /** Whether the body may be omitted. */
  readonly optionalBody?: boolean;
  /** Responses by status, without the errors that every operation may return. */
  readonly responses: Readonly<Record<number, ResponseSpec>>;
}

type Identified<Id> = Id extends OperationId
  ? { readonly operationId: Id; readonly method: MethodOf<Id>; readonly path: PathOf<Id> }
  : never;

/** Returns the operations with their ids, methods and paths. */
export function declareOperations<const Specs extends { readonly [Id in OperationId]?: OperationSpec }>(
  specs: Specs,
) {
  const declared = Object.entries(specs).map(([id, spec]) => [
    id,
    { operationId: id, ...addressOf(id as OperationId), ...spec },
  ]);
  return Object.fromEntries(declared) as { readonly [Id in keyof Specs]: Specs[Id] & Identified<Id> };
}
