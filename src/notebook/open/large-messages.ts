/** Long work on large messages of a kernel, done in slices before they are applied. */
import { isLongString, preparing } from '#src/base/json/prepared-strings.ts';
import { prepareContent } from '#src/runtime/runs/output-content.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Values of a message that are looked at in one step. */
const VALUES_AT_ONCE = 10_000;

/**
 * Makes the JSON of code in a message, for the notebook, the event and the next command, and the stored form of the
 * cell's output, for the end of the run. With `hasPages`, makes the JSON of all its long texts, because pages get the message as it is.
 * Any program in the kernel's process may have written the message.
 */
export function* prepareMessage(json: unknown, hasPages = false): Generator<undefined, Disposable> {
  const output = isFields(json) && isFields(json.output) ? json.output.data : undefined;
  const content = yield* prepareContent(output);
  const texts = yield* preparing(hasPages ? yield* longStringsIn(json) : codesIn(json));
  return {
    [Symbol.dispose]() {
      content?.[Symbol.dispose]();
      texts[Symbol.dispose]();
    },
  };
}

/** Returns the long texts in a message, in steps. */
function* longStringsIn(json: unknown): Generator<undefined, string[]> {
  const found = new Set<string>();
  const open = [json].filter(isFields);
  let looked = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop())
    for (const value of Object.values(next)) {
      if (typeof value === 'string' && isLongString(value)) found.add(value);
      else if (isFields(value)) open.push(value);
      if (++looked % VALUES_AT_ONCE === 0) yield;
    }
  return [...found];
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
