/** Long work on large messages of a kernel, done in slices before they are applied. */
import { preparing } from '#src/core/json/prepared-strings.ts';
import { prepareContent } from '#src/runs/output-content.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Makes the JSON of code in a message, for the notebook, the event and the next command, and the stored form of the
 * cell's output, for the end of the run. Any program in the kernel's process may have written the message.
 */
export function* prepareMessage(json: unknown): Generator<undefined, Disposable> {
  const output = isFields(json) && isFields(json.output) ? json.output.data : undefined;
  const content = yield* prepareContent(output);
  const codes = yield* preparing(codesIn(json));
  return {
    [Symbol.dispose]() {
      content?.[Symbol.dispose]();
      codes[Symbol.dispose]();
    },
  };
}

/** Returns the code of cells that a change of the document brings. */
export function codesIn(json: unknown): string[] {
  if (!isFields(json) || !isFields(json.transaction)) return [];
  const { changes } = json.transaction;
  if (!Array.isArray(changes)) return [];
  return changes.flatMap((change: unknown) =>
    isFields(change) && typeof change.code === 'string' ? [change.code] : [],
  );
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null;
}
