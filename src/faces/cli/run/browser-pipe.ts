import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { cutText } from '#src/base/text/cut-text.ts';

/** The largest message of a browser, such as a picture. A larger message ends the browser. */
const MAX_MESSAGE_BYTES = 64 * 2 ** 20;

/** The descriptors that `--remote-debugging-pipe` uses in the browser. */
const [COMMANDS, ANSWERS] = [3, 4];

/** The `stdio` of a browser that is controlled over a pipe. Its standard error tells why the browser could not be started. */
export const PIPE_STDIO = ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] as const;

type Message = Readonly<Record<string, unknown>>;

interface Waiting {
  resolve(result: Message): void;
  reject(error: Error): void;
}

/**
 * A browser that is controlled by the DevTools protocol (https://chromedevtools.github.io/devtools-protocol/) over a pair of pipes,
 * so that nobody else can control it. Messages are JSON with a zero byte at the end.
 */
export class BrowserPipe {
  readonly #child: ChildProcess;
  readonly #commands: Writable;
  readonly #waiting = new Map<number, Waiting>();
  readonly #listeners = new Map<string, (params: Message) => void>();
  #pieces: Buffer[] = [];
  #bytes = 0;
  #lastId = 0;
  #ended: Error | undefined;
  #stderr = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#commands = child.stdio[COMMANDS] as Writable;
    const answers = child.stdio[ANSWERS] as Readable;
    answers.on('data', (bytes: Buffer) => this.#take(bytes));
    for (const stream of [this.#commands, answers]) stream.on('error', () => {}); // 'close' of the process follows
    child.stderr?.on('data', (bytes: Buffer) => {
      this.#stderr = cutText(this.#stderr + bytes.toString(), 0, 16_000);
    });
    child.once('error', (error) => this.#end(error));
    child.once('close', () => this.#end(new Error('the browser has ended')));
  }

  /** The beginning of the browser's standard error. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Calls the listener for each event of this name. */
  on(method: string, listener: (params: Message) => void): void {
    this.#listeners.set(method, listener);
  }

  /** Sends a command. Rejects with an error that the browser returns, and when the browser ends. */
  send(method: string, params: Message = {}, sessionId?: string): Promise<Message> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const id = ++this.#lastId;
    const message = { id, method, params, ...(sessionId === undefined ? {} : { sessionId }) };
    this.#commands.write(`${JSON.stringify(message)}\0`);
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #take(bytes: Buffer): void {
    let from = 0;
    for (let end = bytes.indexOf(0); end !== -1; end = bytes.indexOf(0, from)) {
      const message = Buffer.concat([...this.#pieces, bytes.subarray(from, end)]).toString();
      this.#pieces = [];
      this.#bytes = 0;
      from = end + 1;
      this.#dispatch(message);
    }
    this.#pieces.push(bytes.subarray(from));
    this.#bytes += bytes.byteLength - from;
    if (this.#bytes > MAX_MESSAGE_BYTES) this.#child.kill('SIGKILL');
  }

  #dispatch(text: string): void {
    const { id, method, params, result, error } = JSON.parse(text) as {
      readonly id?: number;
      readonly method?: string;
      readonly params?: Message;
      readonly result?: Message;
      readonly error?: { readonly message: string };
    };
    if (id === undefined) {
      this.#listeners.get(method ?? '')?.(params ?? {});
      return;
    }
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result ?? {});
    else waiting?.reject(new Error(error.message));
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
  }
}
