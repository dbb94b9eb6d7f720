/**
 * One child process of the kernel host, from the order that starts it to the report of its end. It
 * owns the process, the socket between the two and its timers; all three are gone once `ended` was
 * called. Every process that parses or runs a user's input is one of these.
 *
 * The order names the limits of the process and nothing of a workspace, because the host reads
 * orders in its memory and every later kernel inherits that memory. The launch, which is the task
 * of the process, is sent once the process was admitted (kernel-door.ts). Everything that the
 * process sends is untrusted. A child has ended when both its process and its socket have; after
 * the first of the two ends, the wait for the other is bounded.
 */

import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import type { PeerProcess } from '#src/base/os/peer-process.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import type { ProcessEnd } from './exit-classification.ts';
import { encodeLongFrame } from './frame-decoder.ts';
import type { FrameSender } from './frame-sender.ts';
import type { KernelLog, Zygote } from './host/zygote-process.ts';
import { asRecord, asText, isRecord } from './json-shape.ts';
import { KernelDoor } from './kernel-door.ts';
import { type FrameReading, KernelSocket } from './kernel-socket.ts';
import type { ChildRequest, Confinement } from './launch-order.ts';

/** The parts of the kernel host that a child uses. */
export interface ChildPort {
  /** The running host. Waits while it restarts, rejects when it is down for good. */
  readonly zygote: () => Promise<Zygote>;
  /** Returns an unused path for one socket. */
  readonly newSocketPath: () => string;
  /** Identifies and signals the process at the other end of a connection. */
  readonly peers: () => PeerProcess;
  readonly log: KernelLog;
}

/** Starts children of the kernel host. */
export interface ChildStarter {
  /**
   * Calls `request` at the time that the constructor of `ConfinedChild` names, with the confinement
   * of kernels, or with null when kernels are not confined. Frames are JSON unless `reading` says
   * otherwise.
   */
  startChild(
    request: (confinement: Confinement | null) => ChildRequest,
    events: ChildEvents,
    reading?: FrameReading,
  ): ConfinedChild;
  /**
   * Returns an unused path for one socket or one folder with sockets, in a folder that only the server can
   * enter.
   */
  newSocketPath(): string;
}

export type ChildEnd =
  /**
   * The process has ended. `process` is null when the socket closed and the host did not report the
   * end in time.
   */
  | { readonly kind: 'ended'; readonly process: ProcessEnd | null }
  /** The kernel host ended, and the child with it. */
  | { readonly kind: 'lost' }
  /** The kernel host refused the order. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The kernel host or the socket is missing. */
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** The child broke the protocol and was killed. */
  | { readonly kind: 'broken'; readonly reason: string }
  /** The child did not read the data sent to it, and was killed. */
  | { readonly kind: 'deaf' }
  /**
   * An error was thrown while a frame was handled, which is a bug of the server. The child was
   * killed.
   */
  | { readonly kind: 'failed'; readonly error: unknown };

export interface ChildEvents {
  /** The child has connected and is sent its launch. */
  admitted?(): void;
  /** `node`: the other machine on which the process runs; undefined for a process on this machine. */
  forked?(pid: number, node: string | undefined): void;
  /** Parsed frames in order. A `ShapeError` thrown here counts as a breach of the protocol. */
  received(values: readonly unknown[]): void;
  /** Called once, after all other callbacks. */
  ended(end: ChildEnd): void;
}

/**
 * How long to wait for the host's report of an end, which usually comes within milliseconds. A busy
 * machine, or a host that loads a library, takes longer. Without the report the server cannot say
 * why a child did not start.
 */
const END_DETAIL_MS = 2000;
/**
 * How long the socket of a dead child must have been quiet before it is no longer read, and for how long it is read at most. A
 * process that a cell started may keep the socket open for ever, and write to it.
 */
const LAST_WORDS_MS = 250;
const LAST_WORDS_LIMIT_MS = 5000;
const KILL_MS = 1000;
/** The channel of the first frame to a child. */
const LAUNCH = 6;
const MAX_WORDS_CHARS = 4096;
const NOTHING = Buffer.alloc(0);

export class ConfinedChild implements Disposable {
  readonly #id = randomBytes(8).toString('hex');
  readonly #port: ChildPort;
  readonly #events: ChildEvents;
  readonly #socket: KernelSocket;
  /** Sends frames to the child; ignores them while it is not connected. */
  readonly sender: FrameSender;
  #door: KernelDoor | null = null;
  readonly #timers: NodeJS.Timeout[] = [];
  #zygote: Zygote | null = null;
  #process: ProcessEnd | null = null;
  #hasInit = false;
  #isOnNode = false;
  #isAdmitted = false;
  /** The child's own explanation of why it could not begin to work. */
  #words = '';
  #isClosed = false;
  #isEnding = false;
  #isGone = false;

  /**
   * Starts the child at once, but reports no event before the caller's turn is over. `request` is
   * called when the host is up, immediately before the launch that it returns is sent.
   */
  constructor(port: ChildPort, request: () => ChildRequest, events: ChildEvents, reading?: FrameReading) {
    this.#port = port;
    this.#events = events;
    this.#socket = new KernelSocket(
      {
        received: (values) => this.#receive(values),
        broken: (reason) => this.#end({ kind: 'broken', reason }),
        deaf: () => this.#end({ kind: 'deaf' }),
        failed: (error) => this.#end({ kind: 'failed', error }),
        closed: () => this.#onSocketClosed(),
      },
      reading,
    );
    this.sender = this.#socket.sender;
    this.#start(request).catch((error: unknown) => {
      this.#end({ kind: 'unavailable', reason: error instanceof Error ? error.message : String(error) });
    });
  }

  /** Hands over nothing more from the child, or continues (kernel-socket.ts). */
  hold(isHeld: boolean): void {
    this.#socket.hold(isHeld);
  }

  /** Reads nothing more from the child until `resume`. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /**
   * Sends a signal; SIGINT goes to the child's whole process group. Ignored when the child is gone.
   * A child that has an init gets the signal through its socket and not through the host, because
   * the host may be busy, and a signal through it would have to wake two more processes. A node sends SIGINT itself, after the
   * frame that announces it: the frame and an order to the node come by different connections, and so in any order.
   */
  signal(name: 'SIGINT' | 'SIGKILL'): void {
    if (this.#isOnNode && name === 'SIGINT') return;
    const signal = constants.signals[name];
    if (this.#hasInit && this.#socket.signalPeer(this.#port.peers(), signal)) return;
    this.#zygote?.signal(this.#id, signal);
  }

  /** Notes whether the child works, for its part of the processors. */
  setBusy(isBusy: boolean): void {
    if (!this.#isGone) this.#zygote?.setBusy?.(this.#id, isBusy);
  }

  /** Kills the child. `ended` follows within a second in every case. */
  kill(): void {
    if (this.#isGone) return;
    this.#isEnding = true;
    this.signal('SIGKILL');
    this.#socket.resume();
    this.#after(this.#zygote === null ? 0 : KILL_MS, () => this.#end({ kind: 'ended', process: null }));
  }

  /** Kills the child. No event follows. */
  [Symbol.dispose](): void {
    if (this.#isGone) return;
    this.#isGone = true;
    for (const timer of this.#timers) clearTimeout(timer);
    if (this.#process === null) this.signal('SIGKILL');
    this.#door?.[Symbol.dispose]();
    this.#socket.destroy();
  }

  async #start(request: () => ChildRequest): Promise<void> {
    let zygote = await this.#port.zygote();
    if (this.#isGone || this.#isEnding) return;
    const token = randomBytes(32).toString('hex');
    const path = this.#port.newSocketPath();
    let launch: ChildRequest['launch'] | undefined;
    const admit = (socket: Socket, bytes: Buffer) => {
      this.#isAdmitted = true;
      this.#socket.take(socket, bytes);
      this.sender.send(encodeLongFrame(LAUNCH, launch));
      launch = undefined;
      this.#events.admitted?.();
    };
    const door = new KernelDoor(token, this.#port.peers(), admit);
    this.#door = door;
    await door.listen(path);
    // The host may have ended meanwhile. It has already reported its children as lost, and would report
    // nothing about another child.
    while (!zygote.alive) zygote = await this.#port.zygote();
    if (this.#isGone || this.#isEnding) return;
    this.#zygote = zygote;
    const { order, launch: toSend, workspaceId } = request();
    launch = toSend;
    zygote.order(
      this.#id,
      { ...order, connection: { path, token } },
      {
        forked: (pid, isInit, node) => {
          this.#isOnNode = node !== undefined;
          this.#hasInit = isInit && !this.#isOnNode;
          this.#events.forked?.(pid, node);
          if (node === undefined) door.expect(pid);
        },
        connected: (socket) => {
          door[Symbol.dispose]();
          if (this.#isGone || this.#isAdmitted) socket.destroy();
          else admit(socket, NOTHING);
        },
        ended: (end) => this.#onProcessEnded(end),
        refused: (reason) => this.#end({ kind: 'refused', reason }),
        lost: () => this.#end({ kind: 'lost' }),
      },
      { workspaceId },
    );
  }

  #receive(values: readonly unknown[]): void {
    const failure = values.findIndex(isStartFailure);
    if (failure === -1) {
      this.#events.received(values);
      return;
    }
    this.#words = cutText(
      asText(asRecord(values[failure], 'the message').words, 'words'),
      0,
      MAX_WORDS_CHARS,
    );
    this.#port.log.warn(
      { id: this.#id, words: this.#words },
      'a process of the kernel host ended before it could work',
    );
    const others = values.filter((value) => !isStartFailure(value));
    if (others.length > 0) this.#events.received(others);
  }

  #onSocketClosed(): void {
    this.#isClosed = true;
    if (this.#process !== null) this.#end({ kind: 'ended', process: this.#process });
    else this.#after(END_DETAIL_MS, () => this.#end({ kind: 'ended', process: this.#process }));
  }

  #onProcessEnded(end: ProcessEnd): void {
    this.#process = end;
    this.#socket.resume();
    if (this.#isAdmitted && !this.#isClosed) this.#awaitLastWords(end, performance.now());
    else this.#end({ kind: 'ended', process: end });
  }

  #awaitLastWords(end: ProcessEnd, since: number): void {
    const { progress } = this.#socket;
    this.#after(LAST_WORDS_MS, () => {
      // A thread that was busy all the time runs its timers before it reads; `setImmediate` comes after the read.
      setImmediate(() => {
        const isQuiet = !this.#socket.isWorking && this.#socket.progress === progress;
        if (isQuiet || performance.now() - since > LAST_WORDS_LIMIT_MS)
          this.#end({ kind: 'ended', process: end });
        else this.#awaitLastWords(end, since);
      });
    });
  }

  #end(end: ChildEnd): void {
    if (this.#isGone) return;
    this[Symbol.dispose]();
    const hasWords = end.kind === 'ended' && end.process !== null && this.#words !== '';
    this.#events.ended(hasWords ? { ...end, process: { ...end.process, words: this.#words } } : end);
  }

  #after(delayMs: number, act: () => void): void {
    if (!this.#isGone) this.#timers.push(setTimeout(act, delayMs));
  }
}

function isStartFailure(value: unknown): boolean {
  return isRecord(value) && value.op === 'start-failed';
}
