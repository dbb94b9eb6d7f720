import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { VendorOrder, VendorReport } from './vendor-process.ts';

const MAIN = fileURLToPath(new URL('vendor-process.js', import.meta.url));

type Kind = VendorReport['type'];
type Of<K extends Kind> = Extract<VendorReport, { readonly type: K }>;

/** Starts, controls and ends a provider process (vendor-process.ts). */
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

  /** Resolves when the process listens. */
  static async start(): Promise<Vendor> {
    const vendor = new Vendor(fork(MAIN, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] }));
    vendor.#port = (await vendor.#next('listening')).port;
    return vendor;
  }

  /** The settings that make a server use this provider. */
  get environment(): Record<string, string> {
    return { TROUPE_OPENAI_COMPATIBLE_URL: `http://127.0.0.1:${this.#port}/v1` };
  }

  /** Resolves when `count` conversations wait for `go`. */
  async waiting(count: number): Promise<void> {
    if (this.#waitingCount < count) await this.#next('waiting', (report) => report.count >= count);
  }

  /** Resolves with the time, in wall-clock milliseconds, at which the next caller left an unfinished answer. */
  async left(): Promise<number> {
    return (await this.#next('left')).at;
  }

  /** Makes all waiting conversations stream. Resolves when the last token is sent. */
  async talk(): Promise<void> {
    this.#waitingCount = 0;
    this.#child.send('go' satisfies VendorOrder);
    await this.#next('said');
  }

  /** Ends the answers whose tokens were all sent. */
  finish(): void {
    this.#child.send('end' satisfies VendorOrder);
  }

  /** Ends the process. */
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
