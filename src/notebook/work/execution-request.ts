/** Reads execution requests: which changes they make in the present notebook, and which cells they run. */

import { AppError, type Violation } from '#src/base/errors/errors.ts';
import type { CellError } from '#src/confined/processes/kernel/messages.ts';
import { errorMessage } from '#src/contract/outputs/error-text.ts';
import type { ExecutionRequest as SentExecution } from '#src/contract/wire/run.ts';
import { requireCurrent } from '../open/current-state.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import type { NotebookView } from '../open/view.ts';
import { type CellConfig, configOf } from '../saved/document.ts';

export interface RequestedCell {
  readonly cellId: string;
  readonly version?: number;
  readonly code?: string;
  readonly config?: CellConfig;
}

type AllCells = Extract<SentExecution, { type: 'all' }>;

export type RequestedExecution =
  | AllCells
  | (Omit<AllCells, 'type'> & { readonly type: 'cells'; readonly cells: readonly RequestedCell[] });

/** A parsed request. */
interface ReadExecution {
  /** The request without members that are null, because null means that a member is left out. */
  readonly request: RequestedExecution;
  /** Whether the request changes the notebook, which only a session in edit mode may do. */
  readonly edits: boolean;
}

/** Returns the parsed request. */
export function executionOf(sent: SentExecution): ReadExecution {
  if (sent.type === 'all') return { request: sent, edits: false };
  let edits = false;
  const cells: RequestedCell[] = [];
  for (const { cellId, version, code, config } of sent.cells) {
    const read = version == null ? { cellId } : { cellId, version };
    if (code == null && config == null) {
      cells.push(read);
      continue;
    }
    edits = true;
    cells.push({
      ...read,
      ...(code == null ? {} : { code }),
      ...(config == null ? {} : { config: cellConfigOf(config) }),
    });
  }
  return { request: { ...sent, cells }, edits };
}

type SentConfig = NonNullable<Extract<SentExecution, { type: 'cells' }>['cells'][number]['config']>;

/** A null column stays, because it means that the cell is in no column. */
function cellConfigOf({ name, ...config }: SentConfig): CellConfig {
  return name == null ? config : { ...config, name };
}

/** Returns the ids of the cells to run, in document order. Throws `unknown_cell`, `duplicate_cell` or `invalid_request`. */
export function requestedCells(request: RequestedExecution, view: NotebookView): string[] {
  if (request.type === 'all') {
    return view.cells.filter((cell) => !configOf(cell.options).disabled).map((cell) => cell.id);
  }
  if (request.cells.length === 0) {
    throw new AppError('invalid_request', 'Name at least one cell.', {
      errors: [{ path: '/cells', message: 'must not be empty' }],
    });
  }
  const seen = new Set<string>();
  const unknown: Violation[] = [];
  for (const [index, { cellId }] of request.cells.entries()) {
    const path = `/cells/${index}/cellId`;
    if (seen.has(cellId)) {
      throw new AppError('duplicate_cell', `The cell ${cellId} is requested twice.`, {
        errors: [{ path, message: 'must be unique within the request' }],
      });
    }
    seen.add(cellId);
    if (view.get(cellId) === undefined)
      unknown.push({ path, message: `there is no cell ${JSON.stringify(cellId)}` });
  }
  if (unknown.length > 0) {
    throw new AppError('unknown_cell', 'The notebook has no such cell.', { errors: unknown });
  }
  const ids: string[] = [];
  for (const { id } of view.cells) if (seen.has(id)) ids.push(id);
  return ids;
}

/** Throws `stale_update` when the notebook has changed since the caller of the request read it. */
export function refuseStale(
  request: RequestedExecution,
  live: Pick<LiveNotebook, 'view' | 'document'>,
): void {
  const { expectedUpdatedAt } = request;
  requireCurrent(live, { expectedUpdatedAt, cells: request.type === 'cells' ? request.cells : [] });
}

/** Errors of one cell that does not compile. These are not structural errors, because the run fails at that cell. */
export const OF_ONE_CELL: ReadonlySet<string> = new Set(['syntax', 'import-star']);

/** Returns the code that a request brings and the notebook does not have yet, by cell id. */
export function newCodes(request: RequestedExecution, view: NotebookView): ReadonlyMap<string, string> {
  const codes = new Map<string, string>();
  for (const { cellId, code } of request.type === 'cells' ? request.cells : []) {
    if (code !== undefined && code !== view.get(cellId)?.code) codes.set(cellId, code);
  }
  return codes;
}

/** How many cells the detail of a refusal names. Its members name all cells. */
const MAX_NAMED_CELLS = 10;

/**
 * Throws `structural_error` when one of `cellIds` (the cells to run and the cells that they depend on) has a structural error.
 * `labelOf` names the cells.
 */
export function refuseStructuralErrors(
  cellIds: Iterable<string>,
  errorsOf: (cellId: string) => readonly CellError[],
  labelOf: (cellId: string) => string = String,
): void {
  const broken = [...cellIds].flatMap((cellId) => {
    const errors = errorsOf(cellId).filter(({ type }) => !OF_ONE_CELL.has(type));
    return errors.length === 0 ? [] : [{ cellId, errors: described(errors, labelOf) }];
  });
  if (broken.length === 0) return;
  const named = broken
    .slice(0, MAX_NAMED_CELLS)
    .map(({ cellId, errors: [first] }) => `${labelOf(cellId)} (${first?.message})`);
  const more = broken.length > MAX_NAMED_CELLS ? `, and ${broken.length - MAX_NAMED_CELLS} more` : '';
  throw new AppError('structural_error', `These cells must be corrected first: ${named.join(', ')}${more}.`, {
    members: { cells: broken },
  });
}

/** Describes errors in a fixed order, because marimo finds errors of one type in any order. */
function described(errors: readonly CellError[], labelOf: (cellId: string) => string) {
  const types = [...new Set(errors.map(({ type }) => type))];
  return errors
    .map((error) => describe(error, labelOf))
    .sort(
      (one, other) =>
        types.indexOf(one.type) - types.indexOf(other.type) || (one.message < other.message ? -1 : 1),
    );
}

function describe(error: CellError, labelOf: (cellId: string) => string): { type: string; message: string } {
  return { type: error.type, message: errorMessage(error, labelOf) };
}
