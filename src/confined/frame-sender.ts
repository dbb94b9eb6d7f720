/**
 * Sends frames to one child of the kernel host in their order, even if some take a while to make.
 */

import type { Socket } from 'node:net';
import { unawaited } from '#src/core/unawaited.ts';

/** The parts of one frame. */
export type FrameParts = readonly Uint8Array[];

/** The longest time for which `sent` is delayed while the socket has no room for the whole frame. */
const MAX_UNSENT_MS = 100;

interface UnsentFrame {
  readonly frame: FrameParts | Promise<FrameParts>;
  readonly sent: (() => void) | undefined;
}

export class FrameSender {
  /** Undefined until the child has connected. */
  socket: Socket | undefined;
  /** The first frame that is still being made, and all frames after it. */
  readonly #unsent: UnsentFrame[] = [];

  /**
   * Sends a frame once it is encoded, before any frame sent later. Ignored without a connection. Calls `sent` once the
   * system has taken the whole frame, which is at once if there is room for it, and after `MAX_UNSENT_MS` even if the
   * child does not read.
   */
  send(frame: FrameParts | Promise<FrameParts>, sent?: () => void): void {
    if (this.#unsent.length === 0 && !(frame instanceof Promise)) this.#write(frame, sent);
    else if (this.#unsent.push({ frame, sent }) === 1)
      unawaited(this.#writeUnsent(), 'frame-sender: the frames of a kernel');
  }

  /** Frames are made of plain data, so making one does not fail. */
  async #writeUnsent(): Promise<void> {
    for (let next = this.#unsent[0]; next !== undefined; next = this.#unsent[0]) {
      const { frame, sent } = next;
      this.#write(frame instanceof Promise ? await frame : frame, sent);
      this.#unsent.shift();
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
      writeParts(socket, frame);
      return;
    }
    let report: (() => void) | undefined = sent;
    let timer: NodeJS.Timeout | undefined;
    const reportOnce = () => {
      clearTimeout(timer);
      report?.();
      report = undefined;
    };
    writeParts(socket, frame, reportOnce); // Node.js calls it in a later turn even if all bytes were taken
    if (socket.writableLength === 0) reportOnce();
    else timer = setTimeout(reportOnce, MAX_UNSENT_MS);
  }
}

function writeParts(socket: Socket, frame: FrameParts, written?: () => void): void {
  const last = frame.length - 1;
  if (last > 0) socket.cork();
  for (let index = 0; index < last; index++) socket.write(frame[index]!);
  socket.write(frame[last]!, written);
  if (last > 0) socket.uncork();
}
