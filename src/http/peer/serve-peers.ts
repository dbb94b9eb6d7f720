import type { AnswerChannel, ForwardedHandler, ForwardedHead } from '#src/cluster/peers/forwarding.ts';
import { AdmittedRequest, type PreparedRoute } from '../edge/admission.ts';
import { HttpExchange } from '../edge/exchange.ts';
import type { HttpContext } from '../edge/http-context.ts';
import type { ReplyStamp } from '../reply/write-reply.ts';
import type { Route } from '../route.ts';
import type { WireRequest } from '../wire-exchange.ts';
import { PeerRequest } from './peer-request.ts';
import { PeerResponse } from './peer-response.ts';

/**
 * Returns the function that carries out forwarded requests. Caller, body and limits are checked again, as if the requests had
 * arrived here.
 */
export function servePeers(
  routes: Iterable<PreparedRoute>,
  context: HttpContext,
  stampOf: (req: WireRequest, route: Route) => ReplyStamp,
): ForwardedHandler {
  const byOperation = new Map([...routes].map((prepared) => [prepared.route.operationId, prepared]));
  return (head: ForwardedHead, body: Buffer, answer: AnswerChannel) => {
    const response = new PeerResponse(answer, head.address, head.isStreamed ? undefined : body);
    const prepared = byOperation.get(head.operationId);
    if (prepared === undefined) response.close();
    else {
      const req = new PeerRequest(head);
      const request = new AdmittedRequest(stampOf(req, prepared.route), head.method === 'head');
      new HttpExchange(prepared, context, response, req, request).receive(req);
    }
    return response;
  };
}
