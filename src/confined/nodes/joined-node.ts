/**
 * A connected node: its orders, reports and condition. A node is lost when its connection ends or stays
 * silent.
 */

import type { Socket } from 'node:net';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { ChildListener, KernelPlace } from '../processes/host/zygote-process.ts';
import {
  asBoolean,
  asList,
  asNumber,
  asRecord,
  asText,
  orNull,
  ShapeError,
} from '../processes/json-shape.ts';
import type { Candidate } from './placement.ts';
import {
  decodeRelease,
  type FrameFields,
  LOST_MS,
  type NodeCondition,
  type NodeKernelUse,
  type NodeOffer,
  readLines,
  sendLine,
} from './protocol.ts';

/**
 * The memory that a kernel is expected to take soon after its start, and the time for which this memory
 * counts.
 */
const CLAIM_BYTES = 128 * 2 ** 20;
const CLAIM_MS = 5000;
/** The bytes that may wait for a node. An order has a few kilobytes, and orders are refused when they wait for long. */
const MAX_UNREAD_BYTES = 8 * 2 ** 20;
/** How long the answer to a question about the use of kernels may take. */
const USE_MS = 2000;

interface Child {
  readonly listener: ChildListener;
  readonly workspaceId: string | undefined;
  readonly startedAt: number;
}

export interface NodeEvents {
  /** Called when a kernel has ended, or when the condition has changed: there may be room. */
  changed(): void;
  /** Called once. */
  lost(why: string): void;
  /** The node asks for a certificate in place of its present one. Resolves with the certificate. */
  renew(request: string): Promise<string>;
}

export class JoinedNode {
  readonly name: string;
  /** SHA-256 of its public key, in hexadecimal. */
  readonly key: string;
  readonly offer: NodeOffer;
  readonly address: string;
  readonly joinedAt = new Date().toISOString();
  readonly #socket: Socket;
  readonly #events: NodeEvents;
  readonly #children = new Map<string, Child>();
  #heardAt = performance.now();
  /** Whether it has answered the last `ping`. */
  #hasAnswered = true;
  #isLost = false;
  #use:
    | {
        readonly promise: Promise<readonly NodeKernelUse[]>;
        readonly resolve: (use: readonly NodeKernelUse[]) => void;
      }
    | undefined;
  condition: NodeCondition;
  #isRenewing = false;

  constructor(
    { name, key }: { readonly name: string; readonly key: string },
    socket: Socket,
    rest: Buffer,
    hello: FrameFields,
    events: NodeEvents,
  ) {
    this.name = name;
    this.key = key;
    this.#socket = socket;
    this.#events = events;
    this.address = socket.remoteAddress ?? '';
    this.offer = decodeOffer(hello);
    this.condition = decodeCondition(hello);
    socket.once('close', () => this.end('its connection has ended'));
    readLines(
      socket,
      rest,
      (message) => this.#take(message),
      (error) => this.end(`it sent a message that cannot be read (${String(error)})`),
    );
  }

  /** Returns the facts by which the node for a new kernel is chosen. */
  candidateFor(workspaceId: string | undefined): Candidate & { readonly node: JoinedNode } {
    const now = performance.now();
    const children = [...this.#children.values()];
    return {
      node: this,
      kernels: children.length,
      capacity: this.offer.capacity,
      freeMemoryBytes: this.condition.freeMemoryBytes,
      claimedBytes: children.filter(({ startedAt }) => now - startedAt < CLAIM_MS).length * CLAIM_BYTES,
      loadPerCore: this.condition.load / Math.max(1, this.offer.cores),
      ofWorkspace:
        workspaceId === undefined ? 0 : children.filter((child) => child.workspaceId === workspaceId).length,
    };
  }

  get kernels(): number {
    return this.#children.size;
  }

  /** Orders a kernel. */
  order(
    id: string,
    order: FrameFields,
    listener: ChildListener,
    { workspaceId, port, isPlain }: KernelPlace,
  ): void {
    this.#children.set(id, { listener, workspaceId, startedAt: performance.now() });
    listener.placed?.(this.key);
    this.#say({ ...order, id, port, isPlain, workspaceId });
  }

  signal(id: string, signal: number): void {
    this.#say({ op: 'signal', id, signal });
  }

  /** Reports whether a kernel works, for its part of the node's processors. */
  setBusy(id: string, isBusy: boolean): void {
    this.#say({ op: 'busy', id, isBusy });
  }

  /**
   * Asks for a sign of life, unless there was none for too long. A node that has not answered is not asked again: each `ping` tells it that
   * its last answer has come, and its lease counts from that answer.
   */
  beat(): void {
    if (performance.now() - this.#heardAt > LOST_MS) this.end('it does not answer');
    else if (this.#hasAnswered) {
      this.#hasAnswered = false;
      this.#say({ op: 'ping' });
    }
  }

  /** Resolves with the use of its kernels; with none when the node does not answer in time. */
  use(): Promise<readonly NodeKernelUse[]> {
    if (this.#use !== undefined) return this.#use.promise;
    let resolve: (use: readonly NodeKernelUse[]) => void = () => undefined;
    const promise = new Promise<readonly NodeKernelUse[]>((settle) => {
      resolve = settle;
    });
    const patience = setTimeout(() => resolve([]), USE_MS).unref();
    const forgotten = promise.then(() => {
      clearTimeout(patience);
      this.#use = undefined;
    });
    unawaited(forgotten, 'joined-node: the use of kernels');
    this.#use = { promise, resolve };
    this.#say({ op: 'use' });
    return promise;
  }

  /** Ends the connection. All kernels of the node are lost. */
  end(why: string): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#socket.destroy();
    this.#use?.resolve([]);
    this.#events.lost(why);
    const children = [...this.#children.values()];
    this.#children.clear();
    for (const { listener } of children) listener.lost();
  }

  /** Sends a message. A node that answers and reads nothing is given up, because messages would fill the memory. */
  #say(message: FrameFields): void {
    if (this.#socket.writableLength > MAX_UNREAD_BYTES) this.end('it does not read');
    else sendLine(this.#socket, message);
  }

  #take(message: FrameFields): void {
    this.#heardAt = performance.now();
    switch (message.op) {
      case 'pong': {
        this.#hasAnswered = true;
        const before = this.condition;
        this.condition = decodeCondition(message);
        if (before.filesProblem !== this.condition.filesProblem || this.#isRoomier(before))
          this.#events.changed();
        return;
      }
      case 'use':
        this.#use?.resolve(asList(message.kernels, decodeUse, 'kernels'));
        return;
      case 'renew':
        if (this.#isRenewing) throw new ShapeError('it asks for several certificates at once');
        unawaited(
          this.#renew(asText(message.request, 'request')),
          'joined-node: the renewal of a certificate',
        );
        return;
      default:
        this.#report(message);
    }
  }

  #isRoomier(before: NodeCondition): boolean {
    return this.condition.freeMemoryBytes > before.freeMemoryBytes;
  }

  #report(report: FrameFields): void {
    const id = asText(report.id, 'id');
    const child = this.#children.get(id);
    if (child === undefined) return;
    if (report.op === 'forked') {
      child.listener.forked?.(asNumber(report.pid, 'pid'), asBoolean(report.init, 'init'), this.name);
      return;
    }
    if (report.op !== 'exited' && report.op !== 'refused' && report.op !== 'lost')
      throw new ShapeError('an unknown report');
    this.#children.delete(id);
    if (report.op === 'lost') child.listener.lost();
    else if (report.op === 'refused') child.listener.refused(asText(report.error, 'error'));
    else
      child.listener.ended({
        words: asText(report.words, 'words'),
        code: asNumber(report.code, 'code'),
        signal: orNull(report.signal, asNumber, 'signal'),
        outOfMemory: asBoolean(report.outOfMemory, 'outOfMemory'),
        machineOutOfMemory: asBoolean(report.machineOutOfMemory, 'machineOutOfMemory'),
      });
    this.#events.changed();
  }

  async #renew(request: string): Promise<void> {
    this.#isRenewing = true;
    try {
      this.#say({ op: 'certificate', certificate: await this.#events.renew(request) });
    } catch (error) {
      this.end(`its request for a certificate is wrong (${String(error)})`);
    } finally {
      this.#isRenewing = false;
    }
  }
}

function decodeOffer(hello: FrameFields): NodeOffer {
  return {
    release: decodeRelease(hello.release),
    confinement: asText(hello.confinement, 'confinement'),
    cores: asNumber(hello.cores, 'cores'),
    memoryBytes: asNumber(hello.memoryBytes, 'memoryBytes'),
    capacity: asNumber(hello.capacity, 'capacity'),
  };
}

function decodeCondition(message: FrameFields): NodeCondition {
  return {
    freeMemoryBytes: asNumber(message.freeMemoryBytes, 'freeMemoryBytes'),
    load: asNumber(message.load, 'load'),
    filesProblem: orNull(message.filesProblem, asText, 'filesProblem'),
  };
}

function decodeUse(value: unknown, where: string): NodeKernelUse {
  const use = asRecord(value, where);
  return {
    pid: asNumber(use.pid, 'pid'),
    cpuSeconds: asNumber(use.cpuSeconds, 'cpuSeconds'),
    memoryBytes: asNumber(use.memoryBytes, 'memoryBytes'),
  };
}
