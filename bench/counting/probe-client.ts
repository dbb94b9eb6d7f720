/** Gives orders to the probe in a server (probe.ts). */
import type { HeapProfiler, Profiler } from 'node:inspector';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { ProbeOrder } from './probe.ts';

/** The option of Node.js that loads the probe. */
export const PROBE_OPTION = `--import=${new URL('probe.js', import.meta.url).href}`;

export class Probe {
  readonly #socket: Socket;
  readonly #waiting: ((answer: string) => void)[] = [];

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on('error', () => undefined); // the server has ended
    createInterface({ input: socket }).on('line', (line) => this.#waiting.shift()?.(line));
  }

  /** Connects to the probe of a server that was started with BENCH_PROBE as `path`. */
  static open(path: string): Promise<Probe> {
    return new Promise((resolve, reject) => {
      const socket = connect(path, () => resolve(new Probe(socket)));
      socket.once('error', reject);
    });
  }

  /** Returns in which functions processor time was spent during `work`. */
  async cpuProfile(work: () => Promise<void>): Promise<Profiler.Profile> {
    await this.#order('start cpu');
    await work();
    return JSON.parse(await this.#order('stop cpu')) as Profiler.Profile;
  }

  /** Returns the bytes that `work` allocated on the heap of V8, estimated from samples. */
  async allocations(work: () => Promise<void>): Promise<HeapProfiler.SamplingHeapProfile> {
    await this.#order('start allocations');
    await work();
    return JSON.parse(await this.#order('stop allocations')) as HeapProfiler.SamplingHeapProfile;
  }

  close(): void {
    this.#socket.destroy();
  }

  #order(order: ProbeOrder): Promise<string> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#socket.write(`${order}\n`);
    });
  }
}

/** Returns the bytes of all samples. */
export function allocatedBytes({ head }: HeapProfiler.SamplingHeapProfile): number {
  const sum = (node: HeapProfiler.SamplingHeapProfileNode): number =>
    node.children.reduce((total, child) => total + sum(child), node.selfSize);
  return sum(head);
}
