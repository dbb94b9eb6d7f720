import { createInterface } from 'node:readline';
import { CommandFailure, EXIT } from './exit-code.ts';

/** No command needs more input than this. Without a limit, endless input would take all memory. */
const MAX_INPUT_BYTES = 256 * 1024 * 1024;

/** The input of the program: standard input and Ctrl-C. */
export interface Input {
  /** Returns all of standard input. Rejects with `CommandFailure` beyond 256 MiB. */
  read(): Promise<string>;
  /** Yields lines as they arrive. Calls `ask` before each line if a person types them. */
  lines(ask: () => void): AsyncIterable<string>;
  /** Whether standard input is a terminal. */
  readonly isTerminal: boolean;
  /**
   * Until the result is disposed of, Ctrl-C and SIGTERM call `listener` instead of ending the process. The loss of the terminal,
   * or of the reader of the output, calls it once.
   */
  onInterrupt(listener: () => void): Disposable;
  /**
   * Calls `listener` on Ctrl-\ (SIGQUIT) instead of ending the process, until the result is
   * disposed of. Absent where nobody can send this signal.
   */
  onQuit?(listener: () => void): Disposable;
  /**
   * Until the result is disposed of, calls `listener` with each typed key and does not show the key. Ctrl-C is a key then, too.
   * Absent where nobody types.
   */
  onKey?(listener: (key: string) => void): Disposable;
}

/** The input of this process. */
export interface ProcessInput extends Input {
  /** Interrupts the command because nobody reads its output any more. Returns whether the command ends in an orderly way. */
  hangUp(): boolean;
}

/** Returns the input of this process. */
export function processInput(): ProcessInput {
  const listeners = new Set<() => void>();
  let hasHungUp = false;
  const hangUp = () => {
    // A lost terminal causes several signals and failures of streams, which count as one interruption.
    if (!hasHungUp) for (const listener of listeners) listener();
    hasHungUp = true;
    return listeners.size > 0;
  };
  return {
    hangUp,
    async read() {
      const parts: Buffer[] = [];
      let bytes = 0;
      for await (const part of process.stdin) {
        bytes += part.length;
        if (bytes > MAX_INPUT_BYTES)
          throw new CommandFailure('Standard input has more than 256 MiB.', EXIT.usage);
        parts.push(Buffer.from(part));
      }
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
    ...(process.stdin.isTTY === true && { onKey }),
    onQuit(listener) {
      process.on('SIGQUIT', listener);
      return {
        [Symbol.dispose]: () => {
          process.off('SIGQUIT', listener);
        },
      };
    },
    onInterrupt(listener) {
      process.on('SIGINT', listener).on('SIGTERM', listener).on('SIGHUP', hangUp);
      listeners.add(listener);
      return {
        [Symbol.dispose]() {
          listeners.delete(listener);
          process.off('SIGINT', listener).off('SIGTERM', listener).off('SIGHUP', hangUp);
        },
      };
    },
  };
}

function onKey(listener: (key: string) => void): Disposable {
  const { stdin } = process;
  const onData = (bytes: Buffer) => listener(bytes.toString('utf8'));
  // Node restores the mode when the process ends.
  stdin.setRawMode(true).on('data', onData).resume();
  return {
    [Symbol.dispose]() {
      stdin.off('data', onData).setRawMode(false).pause();
    },
  };
}
