/**
 * A load of many connections, each of which sends the next request as soon as the last one was answered. It runs in a
 * thread of its own; counting starts after the warm-up.
 */
import { createConnection, type Socket } from 'node:net';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { AnswerReader } from '../wire.ts';

/** The requests, the number of connections and the duration. */
export interface ClosedLoop {
  readonly port: number;
  /** Each connection sends one of these requests at a time: the connections take them in turn. */
  readonly request: Buffer | readonly Buffer[];
  readonly connections: number;
  readonly warmUpMs: number;
  readonly forMs: number;
  /** The status that every response must have. */
  readonly expect: number;
  /** The offset of eight digits in the request, which each request replaces by its own number. */
  readonly numberAt?: number;
  /**
   * Counting continues until this many answers have come, but only for a few more seconds. A slow server gives few
   * answers in a short time.
   */
  readonly leastAnswers?: number;
  /** The number of the first request; 0 when absent. */
  readonly firstNumber?: number;
}

/** The measurements. */
export interface LoopResult {
  readonly perSecond: number;
  readonly latenciesMs: Float64Array;
  /** The number of the last request. */
  readonly lastNumber: number;
  /** Start and end of counting, in wall-clock milliseconds. */
  readonly from: number;
  readonly to: number;
}

const MAX_SAMPLES = 2_000_000;
const MAX_COUNTING_MS = 15_000;
const POLL_MS = 50;

/** Runs the load. Calls `counting` when the warm-up is over. Rejects when a status differs or a connection ends. */
export function runClosedLoop(loop: ClosedLoop, counting: () => void = () => undefined): Promise<LoopResult> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: loop });
    worker.on('message', (message: LoopResult | 'counting') => {
      if (message === 'counting') counting();
      else resolve(message);
    });
    worker.once('error', reject);
  });
}

function load(loop: ClosedLoop): void {
  const { port, request, connections, warmUpMs, forMs, expect, numberAt } = loop;
  const latencies = new Float64Array(MAX_SAMPLES);
  const requests = (Array.isArray(request) ? request : [request]).map((one: Uint8Array) => Buffer.from(one));
  const shared = Buffer.allocUnsafe(64 * 1024);
  const sockets: Socket[] = [];
  let count = 0;
  let number = loop.firstNumber ?? 0;
  let isCounting = false;
  for (let i = 0; i < connections; i++) {
    const bytes = requests[i % requests.length]!;
    const reader = new AnswerReader();
    let sentAt = 0;
    const next = () => {
      sentAt = performance.now();
      socket.write(numberAt === undefined ? bytes : numbered(bytes, numberAt, number++));
    };
    const onAnswer = (status: number) => {
      if (status !== expect) throw new Error(`An answer has the status ${status}.`);
      if (isCounting && count < MAX_SAMPLES) latencies[count++] = performance.now() - sentAt;
      next();
    };
    const callback = (length: number) => {
      reader.push(shared.subarray(0, length), onAnswer);
      return true;
    };
    const socket = createConnection(
      { port, host: '127.0.0.1', noDelay: true, onread: { buffer: shared, callback } },
      next,
    );
    socket.once('end', () => {
      throw new Error('The server has ended a connection.');
    });
    sockets.push(socket);
  }
  setTimeout(() => {
    parentPort?.postMessage('counting');
    isCounting = true;
    const from = Date.now();
    const startedAt = performance.now();
    const finish = () => {
      const tookMs = performance.now() - startedAt;
      if (count < (loop.leastAnswers ?? 0) && tookMs < MAX_COUNTING_MS) {
        setTimeout(finish, POLL_MS);
        return;
      }
      const seconds = tookMs / 1000;
      for (const socket of sockets) socket.destroy();
      const result: LoopResult = {
        perSecond: count / seconds,
        latenciesMs: latencies.slice(0, count),
        lastNumber: number,
        from,
        to: Date.now(),
      };
      parentPort?.postMessage(result);
    };
    setTimeout(finish, forMs);
  }, warmUpMs);
}

/**
 * Returns a copy of the request with the number in it. A copy is needed, because a socket may still hold the bytes of
 * the previous request.
 */
function numbered(request: Buffer, at: number, number: number): Buffer {
  const copy = Buffer.from(request);
  copy.write(String(number).padStart(8, '0'), at, 'latin1');
  return copy;
}

if (!isMainThread) load(workerData as ClosedLoop);
