/**
 * An embedded database in a process of its own: a statement that never ends can be killed, one that takes all memory or
 * crashes takes nobody with it, and what it can reach of this server's memory is nothing. The process has an empty
 * environment, says nothing on the console and ends with the server.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { DatasourceFailure } from '../failure.ts';
import { type EngineLibrary, type EngineReply, type EngineRequest, isReply } from './engine-messages.ts';

export class EngineProcess implements Disposable {
  readonly #child: ChildProcess;
  #pending: { done(reply: EngineReply): void; fail(error: DatasourceFailure): void } | undefined;
  #ended = false;
  readonly #prepared: Promise<EngineReply>;

  /** Starts at once to load the library. */
  constructor(library: EngineLibrary) {
    this.#child = fork(fileURLToPath(import.meta.resolve('#src/datasource/embedded/engine-main.ts')), {
      cwd: '/',
      env: {},
      execArgv: ['--max-old-space-size=1024'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    this.#child.on('message', (message: unknown) => {
      const pending = this.#pending;
      this.#pending = undefined;
      if (!isReply(message)) this[Symbol.dispose]();
      else if (message.type === 'failed') {
        const { category, detail } = message;
        pending?.fail(new DatasourceFailure(category, undefined, detail ?? undefined));
      } else pending?.done(message);
    });
    this.#child.once('error', () => this.#end());
    this.#child.once('exit', () => this.#end());
    this.#prepared = this.#exchange({ type: 'prepare', library });
    this.#prepared.catch(() => {}); // told to whoever asks
  }

  /** Whether this process stays for the engine: it does from the start. */
  hold(isHeld: boolean): void {
    if (isHeld) {
      this.#child.ref();
      this.#child.channel?.ref();
    } else {
      this.#child.unref();
      this.#child.channel?.unref();
    }
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Rejects with `DatasourceFailure`: what the database says, or `failed` when the process ends. */
  async ask(request: EngineRequest): Promise<EngineReply> {
    await this.#prepared;
    return this.#exchange(request);
  }

  #exchange(request: EngineRequest): Promise<EngineReply> {
    return new Promise((done, fail) => {
      if (this.#ended || this.#pending !== undefined) return fail(new DatasourceFailure('failed'));
      this.#pending = { done, fail };
      this.#child.send(request, (error) => {
        if (error !== null) this[Symbol.dispose]();
      });
    });
  }

  /** Kills the process. */
  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
    this.#end();
  }

  #end(): void {
    this.#ended = true;
    this.#pending?.fail(new DatasourceFailure('failed'));
    this.#pending = undefined;
  }
}
