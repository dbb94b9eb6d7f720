/** Sends a response of the web platform, piece by piece as its body comes and as fast as the client takes it. */
import { unawaited } from '#src/core/unawaited.ts';
import type { WireResponse } from '../wire-exchange.ts';
import type { WebReply } from './reply.ts';
import type { BeginBody } from './send-file.ts';
import { type ReplyStamp, writeHead } from './write-reply.ts';

interface WebRequest extends ReplyStamp {
  /** Whether the connection must end with the reply: the body is then sent as a whole, because only that can end it. */
  readonly endsConnection: boolean;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

/** Headers of HTTP/1 connections, which uWebSockets.js writes itself. */
const OF_CONNECTION: ReadonlySet<string> = new Set(['connection', 'content-length', 'transfer-encoding']);

/** Resolves when the last byte was handed over or the client has left. Rejects when the body fails; a part may have been sent. */
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
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !OF_CONNECTION.has(name)));
  const isStream = headers['content-type']?.startsWith('text/event-stream') === true;
  if (body === null || !isStream || request.endsConnection) {
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (request.signal.aborted) return;
    res.cork(() => {
      writeHead(res, status, request, headers);
      // This is done even if the body is empty: without a length, clients would wait until the
      // connection ends.
      res.end(bytes, request.endsConnection);
    });
    return;
  }
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
  res.cork(() => writeHead(res, status, request, headers));
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
