/** What comes from the person or the program at the other end: text on standard input, and Ctrl-C. */
export interface Input {
  /** All of standard input. */
  read(): Promise<string>;
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
    isTerminal: process.stdin.isTTY === true,
    onInterrupt(listener) {
      process.on('SIGINT', listener).on('SIGTERM', listener);
      return { [Symbol.dispose]: () => void process.off('SIGINT', listener).off('SIGTERM', listener) };
    },
  };
}
