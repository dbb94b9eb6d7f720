import { AppError } from '#src/base/errors/errors.ts';
import { type BodyCharge, noRoomForReply } from '../edge/body-memory.ts';
import type { WireResponse } from '../wire-exchange.ts';
import type { FileReply } from './reply.ts';
import { type ReplyStamp, writeHead } from './write-reply.ts';

const PIECE_BYTES = 256 * 1024;

/** Called before the head is written, with the length of the body if it is known. Returns false when the client has left. */
export type BeginBody = (status: number, bytes: number) => boolean;

/** The part of the exchange that is needed to send a file. */
export interface FileSending {
  /** Resolves when the reply may be sent. */
  readonly ready: Promise<void> | undefined;
  readonly begin: BeginBody;
  /** The memory of the piece that is being sent. It also bounds the number of open files, because a client may read slowly. */
  readonly charge: Pick<BodyCharge, 'take' | 'release'>;
}

interface FileRequest extends ReplyStamp {
  readonly headOnly: boolean;
  readonly endsConnection: boolean;
  readonly signal: AbortSignal;
}

/**
 * Sends a file, or only its head, and closes the file. Resolves when everything was handed over or the client has left. Rejects
 * when the file cannot be read, or too many files are being sent. If `begin` was called before, the head has been written.
 */
export async function sendFile(
  res: WireResponse,
  reply: FileReply,
  request: FileRequest,
  { ready, begin, charge }: FileSending,
): Promise<void> {
  try {
    await ready;
    if (!charge.take(PIECE_BYTES)) throw noRoomForReply(false);
    if (request.endsConnection) throw new AppError('invalid_request', 'Send this request without a body.');
    const first = request.headOnly ? undefined : await readPiece(reply, 0);
    if (!begin(reply.status, first === undefined ? 0 : reply.sizeBytes)) return;
    if (first === undefined) writeFileHead(res, reply, request);
    else await writeFile(res, reply, first, request, request.signal);
  } finally {
    charge.release();
    await reply.close();
  }
}

/** Resolves with the next piece of a body. Rejects when the piece cannot be read, or the file has become shorter. */
async function readPiece({ read, sizeBytes }: FileReply, offset: number): Promise<Uint8Array> {
  const piece = await read(offset, Math.min(PIECE_BYTES, sizeBytes - offset));
  if (piece.byteLength === 0)
    throw new AppError('stale_update', 'The file has become shorter while it was sent.');
  return piece;
}

/** Writes only the head, with the length that the body would have. */
function writeFileHead(res: WireResponse, reply: FileReply, stamp: ReplyStamp): void {
  res.cork(() => {
    writeHead(res, reply.status, stamp, reply.headers);
    res.writeHeader('content-type', reply.contentType);
    res.writeHeader('content-length', String(reply.sizeBytes));
    res.endWithoutBody();
  });
}

/**
 * Writes a body piece by piece, beginning with `first`, as fast as the client reads. One piece is in memory at a time. Resolves
 * when the last byte was handed over or the client has left. Rejects when a piece cannot be read.
 */
async function writeFile(
  res: WireResponse,
  reply: FileReply,
  first: Uint8Array,
  stamp: ReplyStamp,
  signal: AbortSignal,
): Promise<void> {
  const { sizeBytes } = reply;
  let wake = () => {};
  signal.addEventListener('abort', () => wake());
  res.onWritable(() => {
    wake();
    return true;
  });
  let isOver = false;
  let isAccepted = false;
  res.cork(() => {
    writeHead(res, reply.status, stamp, reply.headers);
    res.writeHeader('content-type', reply.contentType);
    [isAccepted, isOver] = res.tryEnd(first, sizeBytes);
  });
  for (let offset = 0, piece = first; !isOver; ) {
    if (!isAccepted) {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    } else {
      offset += piece.byteLength;
      piece = await readPiece(reply, offset);
    }
    if (signal.aborted) return;
    res.cork(() => {
      // Of a piece that was not accepted, uWebSockets.js has sent a part and has not kept the rest.
      [isAccepted, isOver] = res.tryEnd(piece.subarray(res.getWriteOffset() - offset), sizeBytes);
    });
  }
}
