/**
 * Subscribers of session events, in a thread of their own. A live reader records the age of each printed time when it
 * arrives; a stalled one stops reading once it is subscribed.
 */
import { createConnection, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

/** How many readers there are, and what they read. */
export interface ReadersOptions {
  readonly port: number;
  /** The subscriptions; readers use them in turn. */
  readonly requests: readonly Buffer[];
  readonly count: number;
  readonly stalled: boolean;
}

/** What the readers received. */
export interface ReadersResult {
  /** The age of every printed time at every reader, in milliseconds. */
  readonly delaysMs: Float64Array;
  readonly bytes: number;
  /** Number of readers whose stream the server ended, with or without the event that asks them to reconnect. */
  readonly cutOff: number;
}

/** `countFrom`: what was printed before this time, in wall-clock milliseconds, does not count. */
type Order = 'finish' | { readonly countFrom: number };
type Report = { readonly ready: number } | { readonly result: ReadersResult };

/** The mark that notebooks print before a time in wall-clock milliseconds, from which its age is computed. */
export const TIME_MARK = '@T';
const MARK = Buffer.from(TIME_MARK);
const CUT_MARK = Buffer.from('session.resync-required');
const MAX_SAMPLES = 2_000_000;
const OPEN_AT_ONCE = 100;
/** How far the clocks of two processes may be apart. */
const CLOCK_DIFFERENCE_MS = 100;
/** How long stalled readers, which read again at the end, may take to reach the end of their streams. */
const CATCH_UP_MS = 2_000;

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

  /** Starts to count delays. */
  count(): void {
    const countFrom = performance.timeOrigin + performance.now() - CLOCK_DIFFERENCE_MS;
    this.#worker.postMessage({ countFrom } satisfies Order);
  }

  /** Ends the readers and returns what they received. */
  async finish(): Promise<ReadersResult> {
    const report = new Promise<ReadersResult>((resolve, reject) => {
      this.#worker.once('error', reject);
      this.#worker.once('message', (message: { result: ReadersResult }) => resolve(message.result));
    });
    this.#worker.postMessage('finish' satisfies Order);
    const result = await report;
    await this.#worker.terminate();
    return result;
  }
}

function read({ port, requests, count, stalled }: ReadersOptions): void {
  const delays = new Float64Array(MAX_SAMPLES);
  const shared = Buffer.allocUnsafe(256 * 1024);
  const sockets: Socket[] = [];
  const cutOff = new Set<number>();
  let samples = 0;
  let bytes = 0;
  let subscribed = 0;
  let isCounting = false;
  let countedFrom = 0;

  const take = (index: number, chunk: Buffer) => {
    bytes += chunk.length;
    if (chunk.includes(CUT_MARK)) cutOff.add(index);
    if (!isCounting) return;
    const now = performance.timeOrigin + performance.now();
    for (let at = chunk.indexOf(MARK); at >= 0; at = chunk.indexOf(MARK, at + 2)) {
      const sentAt = Number(chunk.toString('latin1', at + 2, at + 2 + 17));
      // What is older was told again to a new subscriber.
      if (samples < MAX_SAMPLES && sentAt >= countedFrom) delays[samples++] = now - sentAt;
    }
  };
  const open = (index: number) => {
    let isFirst = true;
    const callback = (length: number) => {
      take(index, shared.subarray(0, length));
      if (!isFirst) return true;
      isFirst = false;
      if (++subscribed === count) parentPort?.postMessage({ ready: count } satisfies Report);
      if (sockets.length < count) open(sockets.length);
      if (stalled) socket.pause();
      return !stalled;
    };
    const socket = createConnection(
      { port, host: '127.0.0.1', noDelay: true, onread: { buffer: shared, callback } },
      () => socket.write(Buffer.from(requests[index % requests.length]!)),
    );
    socket.on('error', () => undefined);
    socket.on('end', () => cutOff.add(index));
    sockets.push(socket);
  };
  for (let i = 0; i < Math.min(count, OPEN_AT_ONCE); i++) open(i);

  parentPort?.on('message', (order: Order) => {
    isCounting = order !== 'finish';
    if (order !== 'finish') {
      countedFrom = order.countFrom;
      return;
    }
    for (const socket of sockets) socket.resume();
    setTimeout(
      () => {
        for (const socket of sockets) socket.destroy();
        const result = { delaysMs: delays.slice(0, samples), bytes, cutOff: cutOff.size };
        parentPort?.postMessage({ result } satisfies Report);
      },
      stalled ? CATCH_UP_MS : 0,
    );
  });
}

if (!isMainThread) read(workerData as ReadersOptions);
