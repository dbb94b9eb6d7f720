/** From an execution request to what the kernel is to do, judged against the notebook as it is known. */

import type { KernelCommand } from '#machines/notebook-session.ts';
import { AppError, type Violation } from '#src/core/errors.ts';
import type { Kernel } from '#src/kernel/kernel.ts';
import type { CellError } from '#src/kernel/messages.ts';
import { type CellConfig, configOf } from './document.ts';
import type { WorkPlan } from './kernel-driver.ts';
import type { LiveNotebook } from './live-notebook.ts';
import { RunRecorder } from './run-recorder.ts';
import type { NotebookView } from './view.ts';

export type CacheMode = 'default' | 'no-cache' | 'no-store';

export interface RequestedCell {
  readonly cellId: string;
  readonly code?: string;
  readonly config?: CellConfig;
}

export type ExecutionRequest =
  | { readonly type: 'all'; readonly cacheMode?: CacheMode }
  | { readonly type: 'cells'; readonly cells: readonly RequestedCell[]; readonly cacheMode?: CacheMode };

/** The command that carries a run through the session's chart to its kernel. */
export interface RunCommand extends KernelCommand {
  readonly type: 'run';
  readonly cellIds: readonly string[];
  readonly configured: readonly string[];
  readonly cacheMode: CacheMode;
}

/** Whether a request changes the notebook, which only an edit session may. */
export function edits(request: ExecutionRequest): boolean {
  return (
    request.type === 'cells' &&
    request.cells.some(({ code, config }) => code !== undefined || config !== undefined)
  );
}

/** The cells to run, in document order. Throws `unknown_cell`, `duplicate_cell` or `invalid_request`. */
export function requestedCells(request: ExecutionRequest, view: NotebookView): string[] {
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
  request.cells.forEach(({ cellId }, index) => {
    const path = `/cells/${index}/cellId`;
    if (seen.has(cellId)) {
      throw new AppError('duplicate_cell', `The cell ${cellId} is requested twice.`, {
        errors: [{ path, message: 'must be unique within the request' }],
      });
    }
    seen.add(cellId);
    if (view.get(cellId) === undefined)
      unknown.push({ path, message: `there is no cell ${JSON.stringify(cellId)}` });
  });
  if (unknown.length > 0) {
    throw new AppError('unknown_cell', 'The notebook has no such cell.', { errors: unknown });
  }
  return view.cells.map((cell) => cell.id).filter((id) => seen.has(id));
}

/** Structural errors, by cell, that forbid running `cellIds`: their own and those of what they depend on. */
export function refuseStructuralErrors(
  cellIds: readonly string[],
  view: NotebookView,
  errorsOf: (cellId: string) => readonly CellError[],
): void {
  const broken = [...view.ancestors(cellIds)].flatMap((cellId) => {
    const errors = errorsOf(cellId).filter((error) => error.type !== 'syntax');
    return errors.length === 0 ? [] : [{ cellId, errors: errors.map(describe) }];
  });
  if (broken.length === 0) return;
  const names = broken.map(({ cellId }) => cellId).join(', ');
  throw new AppError('structural_error', `These cells must be corrected first: ${names}.`, {
    members: { cells: broken },
  });
}

function describe(error: CellError): { type: string; message: string } {
  switch (error.type) {
    case 'multiple-defs':
      return {
        type: error.type,
        message: `${error.name ?? 'A name'} is also defined in ${error.cells?.join(', ')}`,
      };
    case 'cycle':
      return { type: error.type, message: 'the cells depend on each other in a cycle' };
    default:
      return { type: error.type, message: error.msg ?? error.type };
  }
}

/** How a run is carried out: its settings first, where it brings any, then the cells. */
export function planRun(
  runId: string,
  command: RunCommand,
  live: LiveNotebook,
): WorkPlan & { recorder: RunRecorder } {
  const { cellIds, configured, cacheMode } = command;
  const recorder = new RunRecorder(runId, cellIds, cacheMode !== 'no-store');
  const cellsOf = (ids: readonly string[]) => ids.flatMap((id) => live.view.get(id) ?? []);
  const configure = (kernel: Kernel) =>
    kernel.configure(
      Object.fromEntries(cellsOf(configured).map(({ id, options }) => [id, configOf(options)])),
    );
  const execute = (kernel: Kernel) =>
    kernel.execute({
      cellIds,
      codes: cellsOf(cellIds).map((cell) => cell.code),
      fresh: cacheMode !== 'default',
    });
  return {
    recorder,
    steps: configured.length > 0 ? [configure, execute] : [execute],
    begin: () => live.beginRun(recorder),
    finish: (done) => {
      live.endCommand();
      return recorder.verdict(done, live.view);
    },
    cancelRequested: () => {
      recorder.cancelRequested = true;
    },
  };
}
