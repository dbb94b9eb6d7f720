/**
 * A mutant: one edit of the sources that breaks one rule. `npm test` has to fail with it. The edits are texts, so that the list needs
 * nothing from the sources that it edits.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The rules of ARCHITECTURE.md that mutants break: of the ten rules, and of the steps in the lives of a request and of an event. */
export type Rule =
  | `rule ${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10}`
  | `request ${1 | 2 | 5 | 8}`
  | `event ${1 | 2 | 3 | 4 | 6}`
  | 'several workers';

export interface Mutant {
  readonly name: string;
  readonly rule: Rule;
  /** The wrong behaviour of the server with the edit. */
  readonly wrong: string;
  /** Relative to the checkout. */
  readonly file: string;
  /** A text that the file contains once. */
  readonly before: string;
  readonly after: string;
  /**
   * The text in place of `before` that behaves as before and evaluates `REACHED` when the edited code runs. When it is absent,
   * `REACHED` becomes a statement before the text.
   */
  readonly marked?: string;
  /** The text that `marked` replaces, where it is not `before`: data have no code that runs. */
  readonly place?: string;
}

/** Stands for the call that records the mutant as reached, in `Mutant.marked`. */
const REACHED = 'REACHED';

/** Returns the file's text with the edit. Throws one line when the text before the edit does not occur exactly once. */
export function mutated(text: string, mutant: Mutant): string {
  return replaced(text, mutant, mutant.before, mutant.after);
}

/** Returns the file's text with a call of `reached` where the edit would be. Throws as `mutated` does. */
export function marked(text: string, mutant: Mutant, reached: string): string {
  const { before, place = before, marked: own = `${REACHED}; ${place}` } = mutant;
  if (!own.includes(REACHED))
    throw new Error(`The marked text of ${mutant.name} does not contain ${REACHED}.`);
  return replaced(text, mutant, place, own.replace(REACHED, reached));
}

function replaced(text: string, { name, file }: Mutant, before: string, by: string): string {
  const at = text.indexOf(before);
  if (at < 0) throw new Error(`${file} no longer contains the text that the mutant ${name} replaces.`);
  if (text.indexOf(before, at + 1) >= 0)
    throw new Error(`${file} contains the text that the mutant ${name} replaces more than once.`);
  return text.slice(0, at) + by + text.slice(at + before.length);
}

/** Returns one line for each mutant that cannot be applied to the checkout at `root`. */
export function outdated(root: string, mutants: readonly Mutant[]): string[] {
  return mutants.flatMap((mutant) => {
    try {
      const text = readFileSync(join(root, mutant.file), 'utf8');
      if (mutated(text, mutant) === text) return `The mutant ${mutant.name} changes nothing.`;
      marked(text, mutant, 'reached()');
      return [];
    } catch (error) {
      return (error as Error).message;
    }
  });
}
