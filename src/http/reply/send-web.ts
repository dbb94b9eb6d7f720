/** Sends a response of the web platform, piece by piece, as its body comes and the client takes it. */
import { unawaited } from '#src/base/async/unawaited.ts';
import type { WireResponse } from '../wire-exchange.ts';
import { type BytesReply, type EmptyReply, raw, type WebReply } from './reply.ts';
import type { BeginBody } from './send-file.ts';
import { type ReplyStamp, writeHead } from './write-reply.ts';

interface WebRequest extends ReplyStamp {
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

/** Headers of HTTP/1 connections, which uWebSockets.js writes itself. */
const OF_CONNECTION: ReadonlySet<string> = new Set(['connection', 'content-length', 'transfer-encoding']);

/** Resolves with the reply. An event stream is sent as it comes, and any other response once it is complete. */
export async function webReply(response: Response): Promise<WebReply | BytesReply | EmptyReply> {
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  return isStream && response.body !== null ? { kind: 'web', response } : completeReply(response);
}

/** Resolves with the response as a reply once its body is complete. */
export async function completeReply(response: Response): Promise<BytesReply | EmptyReply> {
  const { status } = response;
  const bytes = new Uint8Array(await response.arrayBuffer());
  const { 'content-type': contentType, ...headers } = headersOf(response);
  return contentType === undefined || bytes.byteLength === 0
    ? { kind: 'empty', status, headers }
    : raw(contentType, bytes, headers, status);
}

function headersOf({ headers }: Response): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !OF_CONNECTION.has(name)));
}

/**
 * Resolves when the last byte was handed over or the client has left. Rejects when the body fails, of which a part may have been
 * sent.
 */
export async function sendWeb(
  res: WireResponse,
  { response }: WebReply,
  request: WebRequest,
  begin: BeginBody,
): Promise<void> {
  const { status, body } = response;
  if (!begin(status, 0)) {
    await body?.cancel();
    return;
  }
  if (body === null) throw new TypeError('A response without a body is no stream.');
  const reader = body.getReader();
  let wake = () => {};
  const leave = () => {
    wake();
    unawaited(reader.cancel(), 'send-web: the end of an aborted stream');
  };
  request.signal.addEventListener('abort', leave, { once: true });
  if (request.signal.aborted) {
    leave();
    return;
  }
  res.onWritable(() => {
    wake();
    return true;
  });
  res.cork(() => writeHead(res, status, request, headersOf(response)));
  for (;;) {
    const { done, value } = await reader.read();
    if (request.signal.aborted) return;
    if (done) break;
    let isAccepted = false;
    res.cork(() => {
      isAccepted = res.write(value);
    });
    if (!isAccepted) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (request.signal.aborted) return;
    }
  }
  res.cork(() => {
    res.end();
  });
}
