/**
 * Sends frames to one child of the kernel host in their order, even if some take a while to make. Every frame to a child passes
 * here. The memory for frames that the child has not taken has a limit: a child that is given more while it does not read has broken
 * the protocol. Parts of the server whose frames are not bounded by a protocol wait for `onDrained` instead.
 */

import type { Socket } from 'node:net';
import { unawaited } from '#src/base/async/unawaited.ts';

/** The parts of one frame. */
export type FrameParts = readonly Uint8Array[];

/** The longest time for which `sent` is delayed while the socket has no room for the whole frame. */
const MAX_UNSENT_MS = 100;
/** No frame is accepted while more bytes than this wait for the child. A single frame may be larger. */
export const MAX_QUEUED_BYTES = 128 * 2 ** 20;

interface UnsentFrame {
  readonly frame: FrameParts | Promise<FrameParts>;
  readonly bytes: number;
  readonly sent: (() => void) | undefined;
}

export class FrameSender {
  /** Undefined until the child has connected. */
  socket: Socket | undefined;
  /** Called in a later turn each time the child has taken all frames. */
  onDrained: (() => void) | undefined;
  readonly #overrun: () => void;
  /** The first frame that is still being made, and all frames after it. */
  readonly #unsent: UnsentFrame[] = [];
  /** The bytes of the encoded frames in `#unsent`. */
  #unsentBytes = 0;
  #isOverrun = false;
  readonly #afterWrite = () => {
    if (this.isIdle) this.onDrained?.();
  };

  /** `overrun` is called once, in a later turn, when a frame is refused because the child does not read. */
  constructor(overrun: () => void) {
    this.#overrun = overrun;
  }

  /** The bytes that are in memory because the child has not taken them. */
  get queuedBytes(): number {
    const { socket } = this;
    return socket === undefined || socket.destroyed ? 0 : this.#unsentBytes + socket.writableLength;
  }

  /** Whether the child has taken all frames. */
  get isIdle(): boolean {
    const { socket } = this;
    return (
      this.#unsent.length === 0 && (socket === undefined || socket.destroyed || socket.writableLength === 0)
    );
  }

  /**
   * Sends a frame once it is encoded, before any frame sent later. Ignored without a connection. Calls `sent` once the
   * system has taken the whole frame, which is at once if there is room for it, and after `MAX_UNSENT_MS` even if the
   * child does not read. When more than `MAX_QUEUED_BYTES` wait already, the frame is dropped and the child is cut off.
   */
  send(frame: FrameParts | Promise<FrameParts>, sent?: () => void): void {
    if (this.#isOverrun) return;
    if (this.queuedBytes > MAX_QUEUED_BYTES) {
      this.#isOverrun = true;
      queueMicrotask(this.#overrun);
    } else this.sendCounted(frame, sent);
  }

  /** Sends like `send`, but without its limit: the caller counts the bytes of these frames and bounds them. */
  sendCounted(frame: FrameParts | Promise<FrameParts>, sent?: () => void): void {
    if (this.#isOverrun) return;
    if (this.#unsent.length === 0 && !(frame instanceof Promise)) {
      this.#write(frame, sent);
      return;
    }
    const bytes = frame instanceof Promise ? 0 : frame.reduce((sum, { byteLength }) => sum + byteLength, 0);
    this.#unsentBytes += bytes;
    if (this.#unsent.push({ frame, bytes, sent }) === 1)
      unawaited(this.#writeUnsent(), 'frame-sender: the frames of a kernel');
  }

  /** Frames are made of plain data, so making one does not fail. */
  async #writeUnsent(): Promise<void> {
    for (let next = this.#unsent[0]; next !== undefined; next = this.#unsent[0]) {
      const { frame, bytes, sent } = next;
      this.#write(frame instanceof Promise ? await frame : frame, sent);
      this.#unsent.shift();
      this.#unsentBytes -= bytes;
    }
  }

  /**
   * Calls `sent` in the same turn if the system takes the whole frame at once, which is the usual
   * case.
   */
  #write(frame: FrameParts, sent: (() => void) | undefined): void {
    const { socket } = this;
    if (!socket?.writable) {
      sent?.();
      return;
    }
    if (sent === undefined) {
      writeParts(socket, frame, this.#afterWrite);
      return;
    }
    let report: (() => void) | undefined = sent;
    let timer: NodeJS.Timeout | undefined;
    const reportOnce = () => {
      clearTimeout(timer);
      report?.();
      report = undefined;
    };
    // Node.js calls this in a later turn even if all bytes were taken.
    writeParts(socket, frame, () => {
      reportOnce();
      this.#afterWrite();
    });
    if (socket.writableLength === 0) reportOnce();
    else timer = setTimeout(reportOnce, MAX_UNSENT_MS);
  }
}

function writeParts(socket: Socket, frame: FrameParts, written: () => void): void {
  const last = frame.length - 1;
  if (last > 0) socket.cork();
  for (let index = 0; index < last; index++) socket.write(frame[index]!);
  socket.write(frame[last]!, written);
  if (last > 0) socket.uncork();
}
