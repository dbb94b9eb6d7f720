import { CommandEnd, EXIT } from './exit-code.ts';
import type { Input } from './input.ts';
import type { Terminal } from './terminal.ts';

/** How a line is asked for. */
export interface PersonQuestion {
  readonly label: string;
  /** Whether the answer is a secret, which the terminal must not show. */
  readonly isHidden: boolean;
  /** The answer if the person presses only Return. */
  readonly suggested?: string | undefined;
}

/**
 * Resolves with the line that a person types. The question goes to standard error, because standard output has the command's
 * result. Rejects with `CommandEnd` on Ctrl-C and Ctrl-D. `onKey` comes from the input of a terminal.
 */
export async function askLine(
  terminal: Pick<Terminal, 'err'>,
  onKey: NonNullable<Input['onKey']>,
  { label, isHidden, suggested }: PersonQuestion,
): Promise<string> {
  terminal.err(suggested === undefined ? `${label}: ` : `${label} [${suggested}]: `);
  const typed: string[] = [];
  let keys: Disposable | undefined;
  try {
    return await new Promise<string>((resolve, reject) => {
      keys = onKey((text) => {
        if (text.startsWith('\u001b')) return; // an arrow or another key that writes nothing
        for (const key of text) {
          if (key === '\r' || key === '\n') return resolve(typed.join('') || (suggested ?? ''));
          if (key === '\u0003' || key === '\u0004') return reject(new CommandEnd(EXIT.cancelled));
          if (key === '\u007f' || key === '\b') {
            if (typed.pop() !== undefined && !isHidden) terminal.err('\b \b');
          } else if (key >= ' ') {
            typed.push(key);
            if (!isHidden) terminal.err(key);
          }
        }
      });
    });
  } finally {
    keys?.[Symbol.dispose]();
    terminal.err('\n');
  }
}
