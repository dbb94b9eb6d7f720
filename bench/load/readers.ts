/**
 * Subscribers of session events, in a thread of their own. A live reader records the age of each printed time when it
 * arrives; a stalled one stops reading once it is subscribed.
 */
import { createConnection, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { ACCEPTED_WITHIN_MS, acceptedBy } from '../processes.ts';

/** The number of readers, and their streams. */
export interface ReadersOptions {
  readonly port: number;
  /** The subscriptions; readers use them in turn. */
  readonly requests: readonly Buffer[];
  readonly count: number;
  readonly stalled: boolean;
  /** The id of a worker process: readers use only connections that it has accepted. */
  readonly acceptedBy?: number;
}

/** The received events. */
export interface ReadersResult {
  /** The age of every printed time at every reader, in milliseconds. */
  readonly delaysMs: Float64Array;
  readonly bytes: number;
  /** Number of readers whose stream the server ended, with or without the event that asks them to reconnect. */
  readonly cutOff: number;
}

/** `countFrom`: text printed before this time, in wall-clock milliseconds, does not count. */
type Order = { readonly finishAfter: number } | { readonly countFrom: number };
type Report = { readonly ready: number } | { readonly result: ReadersResult };

/** The mark that notebooks print before a time in wall-clock milliseconds, from which its age is computed. */
export const TIME_MARK = '@T';
const MARK = Buffer.from(TIME_MARK);
const CUT_MARK = Buffer.from('session.resync-required');
const MAX_SAMPLES = 2_000_000;
const OPEN_AT_ONCE = 100;
/** How far the clocks of two processes may differ. */
const CLOCK_DIFFERENCE_MS = 100;
/**
 * How long stalled readers may take to reach the end of their streams. They read again when the measurement is over.
 */
const CATCH_UP_MS = 2_000;
/** At the end, how long to wait for the times of lines that the readers have not reported yet. */
const MAX_LATE_MS = 10_000;

/** The readers of one scenario. */
export class Readers {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Resolves when all readers are subscribed. */
  static open(options: ReadersOptions): Promise<Readers> {
    const worker = new Worker(new URL(import.meta.url), { workerData: options });
    return new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('message', () => resolve(new Readers(worker)));
    });
  }

  /** Lets this process end while readers are subscribed. The readers end with this process. */
  leaveOpen(): void {
    this.#worker.unref();
  }

  /** Starts to count delays. */
  count(): void {
    const countFrom = performance.timeOrigin + performance.now() - CLOCK_DIFFERENCE_MS;
    this.#worker.postMessage({ countFrom } satisfies Order);
  }

  /** Ends the readers and returns the received events. Waits for at least `expected` events, but not too long. */
  async finish(expected = 0): Promise<ReadersResult> {
    const report = new Promise<ReadersResult>((resolve, reject) => {
      this.#worker.once('error', reject);
      this.#worker.once('message', (message: { result: ReadersResult }) => resolve(message.result));
    });
    this.#worker.postMessage({ finishAfter: expected } satisfies Order);
    const result = await report;
    await this.#worker.terminate();
    return result;
  }
}

function read({ port, requests, count, stalled, acceptedBy: pid }: ReadersOptions): void {
  const delays = new Float64Array(MAX_SAMPLES);
  const shared = Buffer.allocUnsafe(256 * 1024);
  const sockets: Socket[] = [];
  const cutOff = new Set<Socket>();
  let samples = 0;
  let bytes = 0;
  let subscribed = 0;
  let isCounting = false;
  let countedFrom = 0;

  const take = (socket: Socket, chunk: Buffer) => {
    bytes += chunk.length;
    if (chunk.includes(CUT_MARK)) cutOff.add(socket);
    if (!isCounting) return;
    const now = performance.timeOrigin + performance.now();
    for (let at = chunk.indexOf(MARK); at >= 0; at = chunk.indexOf(MARK, at + 2)) {
      const sentAt = Number(chunk.toString('latin1', at + 2, at + 2 + 17));
      // Older lines were sent again to a new subscriber.
      if (samples < MAX_SAMPLES && sentAt >= countedFrom) delays[samples++] = now - sentAt;
    }
  };
  const open = () =>
    new Promise<Socket>((resolve) => {
      let isFirst = true;
      const callback = (length: number) => {
        take(socket, shared.subarray(0, length));
        if (!isFirst) return true;
        isFirst = false;
        if (++subscribed === count) parentPort?.postMessage({ ready: count } satisfies Report);
        if (stalled) socket.pause();
        return !stalled;
      };
      const onread = { buffer: shared, callback };
      const socket = createConnection({ port, host: '127.0.0.1', noDelay: true, onread }, () =>
        resolve(socket),
      );
      socket.on('error', () => undefined);
      socket.on('end', () => cutOff.add(socket));
    });
  const openAll = async () => {
    while (sockets.length < count) {
      const length = pid === undefined ? Math.min(OPEN_AT_ONCE, count - sockets.length) : OPEN_AT_ONCE;
      const some = await Promise.all(Array.from({ length }, open));
      if (pid !== undefined) await sleep(ACCEPTED_WITHIN_MS);
      const ports = pid === undefined ? undefined : acceptedBy(pid, port);
      for (const socket of some) {
        const isWanted = ports?.has(socket.localPort ?? 0) ?? true;
        if (!isWanted || sockets.length === count) socket.destroy();
        else {
          socket.write(Buffer.from(requests[sockets.length % requests.length]!));
          sockets.push(socket);
        }
      }
      while (subscribed < sockets.length) await sleep(1);
    }
  };
  void openAll();

  const finish = async (expected: number) => {
    for (const socket of sockets) socket.resume();
    if (stalled) await sleep(CATCH_UP_MS);
    for (
      const deadline = performance.now() + MAX_LATE_MS;
      samples < expected && performance.now() < deadline;
    ) {
      await sleep(10);
    }
    for (const socket of sockets) socket.destroy();
    const result = { delaysMs: delays.slice(0, samples), bytes, cutOff: cutOff.size };
    parentPort?.postMessage({ result } satisfies Report);
  };
  parentPort?.on('message', (order: Order) => {
    if ('countFrom' in order) {
      isCounting = true;
      countedFrom = order.countFrom;
    } else void finish(order.finishAfter);
  });
}

if (!isMainThread) read(workerData as ReadersOptions);
