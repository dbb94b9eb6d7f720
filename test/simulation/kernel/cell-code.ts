/**
 * The code of cells in a simulation: a few lines of Python that the scripted kernel understands, and that do the same in a real kernel.
 */

export type Step =
  | { readonly do: 'print'; readonly text: string }
  | { readonly do: 'sleep'; readonly ms: number }
  | { readonly do: 'fail' }
  | { readonly do: 'exit' }
  /** Ignores all interrupts for a while, or until the kernel ends. */
  | { readonly do: 'deafen'; readonly ms: number };

const LINES: readonly (readonly [RegExp, (argument: string) => Step])[] = [
  [/^print\("([^"\\]*)"\)$/, (text) => ({ do: 'print', text })],
  [/^__import__\("time"\)\.sleep\(([\d.]+)\)$/, (s) => ({ do: 'sleep', ms: Number(s) * 1000 })],
  [/^raise ValueError\("(no)"\)$/, () => ({ do: 'fail' })],
  [/^__import__\("os"\)\._exit\((7)\)$/, () => ({ do: 'exit' })],
  [/^exec\("while True:\\n try: (.)/, () => ({ do: 'deafen', ms: Number.POSITIVE_INFINITY })],
  [
    /^exec\("import time\\nend = time\.time\(\) \+ ([\d.]+)\\n/,
    (s) => ({ do: 'deafen', ms: Number(s) * 1000 }),
  ],
];

export const print = (text: string): string => `print("${text}")`;
export const sleep = (ms: number): string => `__import__("time").sleep(${ms / 1000})`;
export const FAIL = 'raise ValueError("no")';
export const EXIT = '__import__("os")._exit(7)';
/** Ends the kernel right after many lines, of which the last one is `text`. */
export const lastWords = (text: string): string => `${`${print('')}\n`.repeat(60)}${print(text)}\n${EXIT}`;
/** Ignores all interrupts. It ends with its kernel only. */
export const DEAF = String.raw`exec("while True:\n try: __import__('time').sleep(9)\n except BaseException: pass")`;
/** Ignores all interrupts for so long. */
export const deafFor = (ms: number): string =>
  `exec("import time\\nend = time.time() + ${ms / 1000}\\nwhile time.time() < end:\\n try: time.sleep(end - time.time())\\n except BaseException: pass")`;
/** Longer than any simulation: it ends with an interrupt only. */
export const HANG = sleep(10_000_000);

/** Returns the steps of a code. Throws for a line that the scripted kernel does not understand. */
export function stepsOf(code: string): Step[] {
  return code
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      for (const [form, step] of LINES) {
        const found = form.exec(line);
        if (found !== null) return step(found[1]!);
      }
      throw new Error(`The scripted kernel does not understand ${line}`);
    });
}
