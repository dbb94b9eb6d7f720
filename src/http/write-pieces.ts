/**
 * A large body goes out as fast as its client takes it: the socket is offered what is left and takes what it has room
 * for. Nothing of it is copied, and other requests are served in between.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { BytesReply } from './reply.ts';
import { type EncodedReply, writeHead } from './write-reply.ts';

/** Up to this much, the copy that the socket library keeps of what was not taken costs less than coming back. */
export const ONE_PIECE_BYTES = 256 * 1024;

export interface LargeReply extends BytesReply {
  readonly bytes: Uint8Array;
}

/** The reply when its body is too large for one piece, else undefined. */
export function bodyInPieces(reply: EncodedReply): LargeReply | undefined {
  if (reply.kind === 'empty' || reply.bytes.length <= ONE_PIECE_BYTES) return undefined;
  return { ...reply, bytes: typeof reply.bytes === 'string' ? Buffer.from(reply.bytes) : reply.bytes };
}

/** Calls `done` once the last byte is handed over. When the client leaves first, its abort handler is all that is called. */
export function writeInPieces(
  res: HttpResponse,
  { status, headers, contentType, bytes }: LargeReply,
  requestId: string,
  done: () => void,
): void {
  const offer = (offset: number): boolean => {
    const [accepted, isOver] = res.tryEnd(bytes.subarray(offset), bytes.byteLength);
    if (isOver) done();
    return accepted;
  };
  res.onWritable(offer);
  res.cork(() => {
    writeHead(res, status, requestId, headers);
    res.writeHeader('content-type', contentType);
    offer(0);
  });
}
