import { shortenText } from '#src/base/text/compact-text.ts';
import type { CellError } from '#src/confined/processes/kernel/messages.ts';
import { errorMessage } from '#src/contract/outputs/error-text.ts';
import type { RawOutput } from '#src/runtime/runs/run-output.ts';
import { labelsOf } from '../open/cell-label.ts';
import type { NotebookView, ViewCell } from '../open/view.ts';
import { OF_ONE_CELL } from './execution-request.ts';

/** The most characters of a cell's error that messages of dependent cells quote. */
const MAX_CAUSE_CHARS = 1000;

/**
 * Returns a function that says why a cell could not run: the cell has a structural error, or needs a cell with such an error. For
 * all other cells the function returns undefined. The function is valid until the view changes.
 */
export function brokenOutputs(view: NotebookView): (cell: ViewCell) => RawOutput | undefined {
  const label = labelsOf(view);
  const broken = view.cells.filter((cell) => structureErrors(cell).length > 0);
  const causes = view.firstNeeded(broken.map(({ id }) => id));
  return (cell) => {
    if (cell.ended === 'success' || cell.ended === 'stopped') return undefined;
    const own = structureErrors(cell);
    if (own.length > 0) return errorOutput(own, own.map((error) => errorMessage(error, label)).join('\n'));
    const causeId = causes.get(cell.id);
    if (causeId === undefined) return undefined;
    const [cause] = structureErrors(view.get(causeId));
    const reason = cause === undefined ? '' : shortenText(errorMessage(cause, label), MAX_CAUSE_CHARS);
    const msg = `This needs the cell ${label(causeId)}, which cannot run: ${reason}`;
    return errorOutput([{ type: 'ancestor-prevented', msg, raising_cell: causeId }], msg);
  };
}

/** Returns the errors in the dependencies between cells. A cell that does not compile fails by itself. */
function structureErrors(cell: ViewCell | undefined): readonly CellError[] {
  return cell?.structural.filter(({ type }) => !OF_ONE_CELL.has(type)) ?? [];
}

/** Returns the output of a cell that could not run, in marimo's shape. */
function errorOutput(data: readonly CellError[], text: string): RawOutput {
  return { mimetype: 'application/vnd.marimo+error', data, text };
}
