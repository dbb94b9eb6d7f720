import { createInterface } from 'node:readline';

/** What comes from the person or the program at the other end: text on standard input, and Ctrl-C. */
export interface Input {
  /** All of standard input. */
  read(): Promise<string>;
  /** Its lines as they come; `ask` is called before each, when somebody types them. */
  lines(ask: () => void): AsyncIterable<string>;
  /** Whether somebody types it. */
  readonly isTerminal: boolean;
  /** Until it is disposed of, Ctrl-C and SIGTERM call `listener` instead of ending the process. */
  onInterrupt(listener: () => void): Disposable;
}

export function processInput(): Input {
  return {
    async read() {
      const parts: Buffer[] = [];
      for await (const part of process.stdin) parts.push(Buffer.from(part));
      return Buffer.concat(parts).toString('utf8');
    },
    async *lines(ask) {
      const isTyped = process.stdin.isTTY === true;
      if (isTyped) ask();
      for await (const line of createInterface({ input: process.stdin })) {
        yield line;
        if (isTyped) ask();
      }
    },
    isTerminal: process.stdin.isTTY === true,
    onInterrupt(listener) {
      process.on('SIGINT', listener).on('SIGTERM', listener);
      return { [Symbol.dispose]: () => void process.off('SIGINT', listener).off('SIGTERM', listener) };
    },
  };
}
