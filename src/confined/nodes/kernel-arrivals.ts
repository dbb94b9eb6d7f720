/**
 * The connections of kernels on nodes, in the process whose sessions they belong to. A kernel is accepted if
 * the node that got its order owns the certificate of the connection, and if id and token match the order.
 * Each id works once.
 */
import { timingSafeEqual } from 'node:crypto';
import type { TLSSocket } from 'node:tls';
import type { ChildListener, StartZygote, Zygote } from '../processes/host/zygote-process.ts';
import { asRecord, asText, ShapeError } from '../processes/json-shape.ts';
import { keyOf } from './enrolled-nodes.ts';
import type { FrameFields } from './protocol.ts';

/** How long a connection waits until this process knows which node got the order. */
const PLACED_MS = 10_000;

interface Expected {
  readonly token: Buffer;
  readonly connected: (socket: TLSSocket) => void;
  /** The key of the node that got the order; undefined while that is not known. */
  key: string | undefined;
  readonly whenPlaced: (() => void)[];
}

export class KernelArrivals {
  readonly #expected = new Map<string, Expected>();
  /** The port at which this process takes the connections. Set once it listens. */
  port = 0;

  /**
   * Takes the connection of a kernel from its first line on. Throws `ShapeError` for an unexpected kernel.
   */
  async take(socket: TLSSocket, { id: given, token }: FrameFields, rest: Buffer): Promise<void> {
    const id = asText(given, 'id');
    const certificate = socket.getPeerX509Certificate();
    const expected = this.#expected.get(id);
    if (!socket.authorized || certificate === undefined || expected === undefined) throw unexpected();
    if (expected.key === undefined) await happens(expected.whenPlaced);
    const proof = Buffer.from(asText(token, 'token'));
    const isRight = proof.length === expected.token.length && timingSafeEqual(proof, expected.token);
    if (!isRight || expected.key !== keyOf(certificate) || !this.#expected.delete(id)) throw unexpected();
    if (rest.length > 0) socket.unshift(rest);
    expected.connected(socket);
  }

  /** Expects the kernel of an order, and returns the listener for reports about it. */
  expect(id: string, order: FrameFields, listener: ChildListener): ChildListener {
    const expected: Expected = {
      token: Buffer.from(asText(asRecord(order.connection, 'connection').token, 'token')),
      connected: (socket) => listener.connected?.(socket),
      key: undefined,
      whenPlaced: [],
    };
    this.#expected.set(id, expected);
    const forget = () => this.#expected.delete(id);
    return {
      forked: (...report) => listener.forked?.(...report),
      placed(key) {
        expected.key = key;
        listener.placed?.(key);
        for (const act of expected.whenPlaced.splice(0)) act();
      },
      ended(end) {
        forget();
        listener.ended(end);
      },
      refused(reason) {
        forget();
        listener.refused(reason);
      },
      lost() {
        forget();
        listener.lost();
      },
    };
  }
}

/** Returns a starter of kernel hosts that expects the kernels of notebooks at `arrivals`. */
export function withArrivals(arrivals: KernelArrivals, start: StartZygote): StartZygote {
  return async (options) => {
    const { zygote: inner, hello } = await start(options);
    const zygote: Zygote = {
      get alive() {
        return inner.alive;
      },
      ended: inner.ended,
      order(id, order, listener, where) {
        if (!isForNodes(order)) inner.order(id, order, listener, where);
        else inner.order(id, order, arrivals.expect(id, order, listener), { ...where, port: arrivals.port });
      },
      signal: (id, signal) => inner.signal(id, signal),
      attend: () => inner.attend?.(),
      ...(inner.onProof !== undefined && {
        onProof: (listener: (problem: string | null) => void) => inner.onProof?.(listener),
      }),
      stop: () => inner.stop(),
      kill: () => inner.kill(),
    };
    return { zygote, hello };
  };
}

/** Returns whether nodes carry out an order: kernels of notebooks, but not the check that a kernel starts. */
export function isForNodes(order: FrameFields): boolean {
  return order.op === 'fork' && order.is_proof !== true;
}

function unexpected(): ShapeError {
  return new ShapeError('No kernel is expected from this node with this id.');
}

function happens(waiting: (() => void)[]): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, PLACED_MS);
    waiting.push(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
