/**
 * Where the log's lines go: a file descriptor, written in the background and in order. Neither a reader that has gone nor
 * one that does not read holds the process up or makes it grow: the first ends the output, the second loses lines, and is
 * told how many when it reads again. (pino's own destination tries for ever to flush into a pipe without a reader.)
 */
import { write, writeSync } from 'node:fs';

/** In characters, of lines that wait for those before them. */
const MOST_HELD = 4 * 1024 * 1024;
const RETRY_MS = 10;
/** How long a flush waits for a reader, in all. */
const PATIENCE_MS = 500;
const NOTHING = new Uint8Array();

export class LogOutput {
  readonly #fd: number;
  #lines: string[] = [];
  #held = 0;
  #lost = 0;
  #isWriting = false;
  #isBroken = false;
  /** What the system did not take of the lines before those. */
  #rest: Uint8Array = NOTHING;

  constructor(fd: number) {
    this.#fd = fd;
  }

  /** Takes one line, with its end. */
  write(line: string): void {
    if (this.#isBroken) return;
    if (this.#held + line.length > MOST_HELD) {
      this.#lost++;
      return;
    }
    this.#lines.push(line);
    this.#held += line.length;
    this.#proceed();
  }

  /** Writes what is held, now. What the system has been given already is left to it. */
  flushSync(): void {
    const deadline = Date.now() + PATIENCE_MS;
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

  /** What is to be written next; empty when there is nothing. */
  #take(): Uint8Array {
    if (this.#rest.length === 0) {
      if (this.#lost > 0) this.#lines.push(lossLine(this.#lost));
      this.#rest = Buffer.from(this.#lines.join(''));
      this.#lines = [];
      this.#held = 0;
      this.#lost = 0;
    }
    const chunk = this.#rest;
    this.#rest = NOTHING;
    return chunk;
  }

  /** A full pipe is tried again; after anything else nobody reads this any more. */
  #fail(error: unknown, chunk: Uint8Array): void {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    this.#isBroken = code !== 'EAGAIN' && code !== 'EBUSY';
    this.#rest = this.#isBroken ? NOTHING : Buffer.concat([chunk, this.#rest]);
    if (this.#isBroken) this.#lines = [];
  }
}

function lossLine(count: number): string {
  const line = {
    level: 'warn',
    time: new Date().toISOString(),
    lost: count,
    msg: 'lines of the log were lost',
  };
  return `${JSON.stringify(line)}\n`;
}
