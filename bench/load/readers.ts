/**
 * Subscribers of one session's events in a thread of its own. A reader that lives notes how old each printed time is
 * when it comes; one that is stalled stops reading once it is subscribed.
 */
import { createConnection, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

export interface ReadersOptions {
  readonly port: number;
  /** One after the other, and from the beginning again. */
  readonly requests: readonly Buffer[];
  readonly count: number;
  readonly stalled: boolean;
}

export interface ReadersResult {
  /** Of every printed time at every reader, in ms. */
  readonly delaysMs: Float64Array;
  readonly bytes: number;
  /** Readers whose stream the server has ended: told to connect again, unless they took nothing for too long to be told. */
  readonly cutOff: number;
}

type Order = 'count' | 'finish';
type Report = { readonly ready: number } | { readonly result: ReadersResult };

/** What a notebook prints so that its age can be told: wall-clock milliseconds behind this mark. */
export const TIME_MARK = '@T';
const MARK = Buffer.from(TIME_MARK);
const CUT_MARK = Buffer.from('session.resync-required');
const MOST_SAMPLES = 2_000_000;
const OPEN_AT_ONCE = 100;
/** How long stalled readers, reading again at the end, may take to come to their end. */
const CATCH_UP_MS = 2_000;

export class Readers {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Resolves when all are subscribed. */
  static open(options: ReadersOptions): Promise<Readers> {
    const worker = new Worker(new URL(import.meta.url), { workerData: options });
    return new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('message', () => resolve(new Readers(worker)));
    });
  }

  /** From here on delays count. */
  count(): void {
    this.#worker.postMessage('count' satisfies Order);
  }

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
  const delays = new Float64Array(MOST_SAMPLES);
  const shared = Buffer.allocUnsafe(256 * 1024);
  const sockets: Socket[] = [];
  const cutOff = new Set<number>();
  let samples = 0;
  let bytes = 0;
  let subscribed = 0;
  let isCounting = false;

  const take = (index: number, chunk: Buffer) => {
    bytes += chunk.length;
    if (chunk.includes(CUT_MARK)) cutOff.add(index);
    if (!isCounting) return;
    const now = performance.timeOrigin + performance.now();
    for (let at = chunk.indexOf(MARK); at >= 0; at = chunk.indexOf(MARK, at + 2)) {
      const sentAt = Number(chunk.toString('latin1', at + 2, at + 2 + 17));
      if (samples < MOST_SAMPLES && sentAt > 0) delays[samples++] = now - sentAt;
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
    isCounting = order === 'count';
    if (order === 'count') return;
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
