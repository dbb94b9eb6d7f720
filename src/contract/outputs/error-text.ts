/** Errors of cells in words, for people and models. Notebook code can send anything as an error, so every member is checked. */
import { parsedOrText } from './python-json.ts';

/**
 * The members of marimo's tagged errors that are read here. `type` determines which of them an
 * error has.
 */
interface CellErrorMembers {
  readonly type?: unknown;
  readonly msg?: unknown;
  readonly exception_type?: unknown;
  /** `multiple-defs`: the variable, and the other cells that define it. */
  readonly name?: unknown;
  readonly cells?: unknown;
  /** `cycle`: `[cell, variables, cell]` for each edge. */
  readonly edges_with_vars?: unknown;
}

type LabelOf = (cellId: string) => string;

/**
 * Returns the message of an error, without the exception's type. `labelOf` returns the name of a
 * cell; by default the name is the id.
 */
export function errorMessage(error: CellErrorMembers, labelOf: LabelOf = String): string {
  switch (error.type) {
    case 'multiple-defs':
      return `${textOr(error.name, 'A name')} is also defined in ${listOf(error.cells).map(String).map(labelOf).join(', ') || 'other cells'}`;
    case 'cycle':
      return `the cells depend on each other in a cycle${cycleText(error.edges_with_vars, labelOf)}`;
    case 'setup-refs':
      return 'the setup cell depends on other cells';
    case 'interruption':
      return 'this was interrupted';
    default:
      return textOr(error.msg, textOr(error.type, 'error'));
  }
}

/**
 * Returns the text of an output that consists of errors. If the server has added a `text`, that is
 * the result, because it names the other cells. Otherwise the result has one line for each error,
 * by the same rule as in `shown_output.py`: the exception's type and its message, or the message
 * alone when it begins with the type or needs none.
 */
export function errorsText(data: unknown, text?: string): string {
  if (text !== undefined) return text.trimEnd();
  const errors = parsedOrText(data);
  if (!Array.isArray(errors)) return 'The cell failed.';
  return errors.map((error: unknown) => errorLine({ ...Object(error) })).join('\n');
}

function errorLine(error: CellErrorMembers): string {
  const message = errorMessage(error).trimEnd();
  const kind = textOr(error.exception_type, '');
  if (message === '') return kind || textOr(error.type, 'error');
  return message.startsWith(kind) ? message : `${kind}: ${message}`;
}

/** Returns the cells of a cycle with the names that lead from one to the next, or nothing when they are not known. */
function cycleText(edges: unknown, labelOf: LabelOf): string {
  const steps = listOf(edges).flatMap((edge) => {
    const [from, names, to] = listOf(edge);
    if (typeof from !== 'string' || typeof to !== 'string') return [];
    return [`${labelOf(from)} → ${labelOf(to)} by ${listOf(names).map(String).join(', ')}`];
  });
  return steps.length === 0 ? '' : ` (${steps.sort().join('; ')})`;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise;
}
