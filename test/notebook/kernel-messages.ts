/** Short constructors for messages of a kernel. */
import type {
  BridgeDone,
  CellError,
  CellOp,
  CellOutput,
  CellStatus,
  CellVerdict,
  Execution,
} from '#src/confined/processes/kernel/messages.ts';

export function cellOp(cellId: string, members: Partial<CellOp>): CellOp {
  return {
    op: 'cell-op',
    cellId,
    output: null,
    console: null,
    status: null,
    staleInputs: null,
    runId: null,
    executionId: null,
    timestamp: 1,
    ...members,
  };
}

export function stdout(data: string): CellOutput {
  return { channel: 'stdout', mimetype: 'text/plain', data, timestamp: 1 };
}
export function stderr(data: string): CellOutput {
  return { ...stdout(data), channel: 'stderr' };
}
export function output(mimetype: string, data: CellOutput['data']): CellOutput {
  return { channel: 'output', mimetype, data, timestamp: 1 };
}
export function errorOutput(...errors: readonly CellError[]): CellOutput {
  return { channel: 'marimo-error', mimetype: 'application/vnd.marimo+error', data: errors, timestamp: 1 };
}

export function verdict(status: CellStatus, stale = false, errors: readonly CellError[] = []): CellVerdict {
  return { status, stale, errors };
}
export function done(
  cells: Readonly<Record<string, CellVerdict>>,
  members: Partial<BridgeDone> = {},
): BridgeDone {
  return {
    op: 'bridge-done',
    seq: 1,
    type: 'execute',
    error: null,
    interrupted: false,
    cells: new Map(Object.entries(cells)),
    ...members,
  };
}

export function phase(cellId: string, is: Execution['phase']): Execution {
  return { op: 'execution', executionId: `e-${cellId}`, cellId, runId: null, phase: is };
}
