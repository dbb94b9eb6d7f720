import { parser } from '@lezer/python';

/** Parsed codes; notebooks are saved again and again with most cells unchanged. */
const known = new Map<string, boolean>();
const KNOWN_LIMIT = 2_000;
const KNOWN_CODE_LIMIT = 4_096;

/**
 * Whether `code` parses as Python. Judged by a grammar, not by an interpreter: what only a compiler refuses (a
 * `return` outside a function) counts as parsed.
 */
export function parses(code: string): boolean {
  if (code.trim() === '') return true;
  const cached = known.get(code);
  if (cached !== undefined) return cached;
  let valid = true;
  parser.parse(code).iterate({
    enter: (node) => {
      if (node.type.isError) valid = false;
      return valid;
    },
  });
  if (code.length <= KNOWN_CODE_LIMIT) {
    if (known.size >= KNOWN_LIMIT) known.clear();
    known.set(code, valid);
  }
  return valid;
}
