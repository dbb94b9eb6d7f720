/** The types of each operation's request and response, for the client. */
import type { TSchema } from 'typebox';
import type { OperationId } from '../paths.ts';
import type { Wire } from '../shape.ts';
import type { OPERATIONS } from './table.ts';

type Spec<Id extends OperationId> = (typeof OPERATIONS)[Id];

/** The query of the operation. The server fills in defaults for members that are left out. */
export type QueryOf<Id extends OperationId> =
  Spec<Id> extends { readonly query: infer Query extends TSchema }
    ? { readonly [Name in keyof Wire<Query>]?: Wire<Query>[Name] | undefined }
    : Readonly<Record<string, never>>;

/** The member of a request that has its body, if it takes JSON. */
export type BodyOf<Id extends OperationId> =
  Spec<Id> extends { readonly body: infer Body extends TSchema }
    ? Spec<Id> extends { readonly optionalBody: true }
      ? { readonly body?: Wire<Body> }
      : { readonly body: Wire<Body> }
    : unknown;

/** The request headers that the operation reads. */
export type HeaderOf<Id extends OperationId> =
  Spec<Id> extends { readonly headers: infer Headers } ? keyof Headers : never;

/** The statuses with which the operation succeeds. */
export type SuccessOf<Id extends OperationId> = Extract<keyof Spec<Id>['responses'], 200 | 201 | 202 | 204>;

/** The JSON of a successful response; undefined for a response without JSON. */
export type AnswerOf<Id extends OperationId, Status extends SuccessOf<Id> = SuccessOf<Id>> = {
  [Success in Status]: Spec<Id>['responses'][Success] extends {
    readonly schema: infer Schema extends TSchema;
  }
    ? Wire<Schema>
    : undefined;
}[Status];
