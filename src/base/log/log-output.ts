/**
 * Writes the lines of the log to a file descriptor, in the background and in order. Its reader can neither block the
 * process nor make it grow: when the reader closes the pipe, the output ends; while it does not read, lines are discarded,
 * and their number is logged when it reads again. (pino's own destination retries for ever when a pipe has no reader.)
 */
import { write, writeSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** Characters that may wait to be written. */
const MAX_HELD_CHARACTERS = 4 * 1024 * 1024;
const RETRY_MS = 10;
/** Errors that pass: the reader of a pipe is slow, or the disk of a file is full. */
const PASSING = new Set(['EAGAIN', 'EBUSY', 'ENOSPC', 'EDQUOT']);
/** How long `flushSync` waits for a reader, in total. */
const MAX_FLUSH_WAIT_MS = 500;
const NOTHING = new Uint8Array();

/** The most bytes that a pipe writes in one piece (PIPE_BUF on Linux), so that lines of other processes cannot interleave. */
export const SHARED_PIPE_BYTES = 4096;

/** The output of one log. */
export class LogOutput {
  readonly #fd: number;
  readonly #maxBytes: number;
  #lines: string[] = [];
  #held = 0;
  #lost = 0;
  #isWriting = false;
  #isBroken = false;
  /** The part of the lines being written that the system has not accepted yet. It goes out before `#lines`. */
  #rest: Uint8Array = NOTHING;

  /** Writes at most `maxBytes` at once, except for a single line that is longer. */
  constructor(fd: number, maxBytes = Number.POSITIVE_INFINITY) {
    this.#fd = fd;
    this.#maxBytes = maxBytes;
  }

  /** Takes one line, including its line break. */
  write(line: string): void {
    if (this.#isBroken) return;
    if (this.#held + line.length > MAX_HELD_CHARACTERS) {
      this.#lost++;
      return;
    }
    this.#lines.push(line);
    this.#held += line.length;
    this.#proceed();
  }

  /**
   * Resolves when all lines are written, in their order, or when the reader has been waited for as
   * long as in `flushSync`.
   */
  async written(): Promise<void> {
    const deadline = Date.now() + MAX_FLUSH_WAIT_MS;
    const waits = () => !this.#isBroken && (this.#isWriting || this.#lines.length > 0);
    while (waits() && Date.now() < deadline) await pause(1);
  }

  /**
   * Writes all waiting lines before it returns. A line that the system is already writing may come after them, so an orderly end
   * awaits `written` instead.
   */
  flushSync(): void {
    const deadline = Date.now() + MAX_FLUSH_WAIT_MS;
    for (let chunk = this.#take(); chunk.length > 0 && !this.#isBroken; chunk = this.#take()) {
      try {
        this.#rest = chunk.subarray(writeSync(this.#fd, chunk));
      } catch (error) {
        this.#fail(error, chunk);
        if (Date.now() > deadline) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
    }
  }

  #proceed(): void {
    if (this.#isWriting || this.#isBroken) return;
    const chunk = this.#take();
    if (chunk.length === 0) return;
    this.#isWriting = true;
    write(this.#fd, chunk, (error, written) => {
      const isDone = error === null;
      if (isDone) this.#rest = Buffer.concat([chunk.subarray(written), this.#rest]);
      else this.#fail(error, chunk);
      const goOn = () => {
        this.#isWriting = false;
        this.#proceed();
      };
      if (isDone) goOn();
      else setTimeout(goOn, RETRY_MS).unref();
    });
  }

  /** Returns the bytes to write next; empty when there are none. */
  #take(): Uint8Array {
    if (this.#rest.length === 0) {
      if (this.#lost > 0) this.#lines.push(lossLine(this.#lost));
      const count = this.#countForOneWrite();
      const text = this.#lines.splice(0, count).join('');
      this.#rest = Buffer.from(text);
      this.#held = this.#lines.length === 0 ? 0 : Math.max(0, this.#held - text.length);
      this.#lost = 0;
    }
    const chunk = this.#rest;
    this.#rest = NOTHING;
    return chunk;
  }

  #countForOneWrite(): number {
    if (this.#maxBytes === Number.POSITIVE_INFINITY) return this.#lines.length;
    let count = 0;
    for (let bytes = 0; count < this.#lines.length; count++) {
      bytes += Buffer.byteLength(this.#lines[count]!);
      if (bytes > this.#maxBytes) return Math.max(1, count);
    }
    return count;
  }

  /** Keeps the chunk for a retry when the pipe or the disk is full. After any other error the output ends. */
  #fail(error: unknown, chunk: Uint8Array): void {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    this.#isBroken = typeof code !== 'string' || !PASSING.has(code);
    this.#rest = this.#isBroken ? NOTHING : Buffer.concat([chunk, this.#rest]);
    if (this.#isBroken) this.#lines = [];
  }
}

function lossLine(count: number): string {
  const line = {
    level: 'warn',
    time: new Date().toISOString(),
    lost: count,
    msg: 'log lines were discarded because the log was not read',
  };
  return `${JSON.stringify(line)}\n`;
}
