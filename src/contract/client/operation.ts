/** Requests of operations: method and path come from the table of the API, the types of the rest from its schemas. */
import type { AnswerOf, BodyOf, QueryOf, SuccessOf } from '../wire/operations/payloads.ts';
import { addressOf, filledPath, type OperationId, type ParamsOf } from '../wire/paths.ts';
import type { OutgoingRequest } from './connection.ts';

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
