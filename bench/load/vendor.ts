import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { VendorOrder, VendorReport } from './vendor-process.ts';

const MAIN = fileURLToPath(new URL('vendor-process.js', import.meta.url));

type Kind = VendorReport['type'];
type Of<K extends Kind> = Extract<VendorReport, { readonly type: K }>;

/** A vendor of models (vendor-process.ts): started, ordered about, ended. */
export class Vendor {
  readonly #child: ChildProcess;
  #port = 0;
  #waitingCount = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (report: VendorReport) => {
      if (report.type === 'waiting') this.#waitingCount = report.count;
    });
  }

  /** Resolves when it listens. */
  static async start(): Promise<Vendor> {
    const vendor = new Vendor(fork(MAIN, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }));
    vendor.#port = (await vendor.#next('listening')).port;
    return vendor;
  }

  /** What a server needs to ask it. */
  get environment(): Record<string, string> {
    return { TROUPE_OPENAI_COMPATIBLE_URL: `http://127.0.0.1:${this.#port}/v1` };
  }

  /** Resolves when so many conversations wait for `go`. */
  async waiting(count: number): Promise<void> {
    if (this.#waitingCount < count) await this.#next('waiting', (report) => report.count >= count);
  }

  /** When the next caller has left an answer that was not over, in wall-clock milliseconds. */
  async left(): Promise<number> {
    return (await this.#next('left')).at;
  }

  /** All that wait speak; resolves when the last token is sent. */
  async talk(): Promise<void> {
    this.#waitingCount = 0;
    this.#child.send('go' satisfies VendorOrder);
    await this.#next('said');
  }

  /** The answers that were said come to their end. */
  finish(): void {
    this.#child.send('end' satisfies VendorOrder);
  }

  end(): void {
    this.#child.disconnect();
  }

  #next<K extends Kind>(type: K, isIt: (report: Of<K>) => boolean = () => true): Promise<Of<K>> {
    return new Promise((resolve, reject) => {
      const onExit = () => reject(new Error('The vendor of models has ended.'));
      const onMessage = (report: VendorReport) => {
        if (report.type !== type || !isIt(report as Of<K>)) return;
        this.#child.off('message', onMessage).off('exit', onExit);
        resolve(report as Of<K>);
      };
      this.#child.on('message', onMessage).once('exit', onExit);
    });
  }
}
