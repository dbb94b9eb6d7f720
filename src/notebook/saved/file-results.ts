/** The saved outputs of a notebook that are written into a file. */

import type { WorkspaceId } from '#src/base/ids.ts';
import type { ConvertRequest } from '#src/confined/processes/children/convert.ts';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import type { Cell } from '#src/contract/wire/notebook.ts';
import type { Store } from '#storage/store.ts';
import { outputsOf, type SavedOutput } from './saved-outputs.ts';

/** The limit of all outputs of a notebook together. The kernel allows half of this limit for one output. */
export const RESULTS_LIMIT_BYTES = 16 * 1024 * 1024;

export type Results = NonNullable<Extract<ConvertRequest, { direction: 'write' }>['results']>;

/**
 * Returns outputs by cell id, in steps of one cell, from the top of the notebook. An output beyond the limit is
 * replaced by a note.
 */
export function* resultsOf(
  store: Store,
  workspaceId: WorkspaceId,
  notebookId: string,
  cells: readonly Cell[],
): Generator<undefined, Results> {
  const results = new Map<string, Results[string]>();
  let size = 0;
  for (const [cellId, record] of outputsOf(store, workspaceId, notebookId, cells)) {
    yield;
    const bytes = sizeOf(record);
    if (size + bytes > RESULTS_LIMIT_BYTES) {
      results.set(cellId, { output: leftOut(bytes) });
      continue;
    }
    size += bytes;
    const { output } = record;
    results.set(cellId, {
      output: output === null ? null : asMarimoHasIt(output),
      console: record.console.map(asMarimoHasIt),
    });
  }
  return Object.fromEntries(results);
}

/** The output without the additions of the bridge. */
function asMarimoHasIt({ text, table, ...output }: CellOutput): CellOutput {
  return output;
}

function sizeOf({ output, console }: SavedOutput): number {
  return [output, ...console].reduce<number>((sum, entry) => sum + textLength(entry), 0);
}

function textLength(entry: unknown): number {
  const data = typeof entry === 'object' && entry !== null && 'data' in entry ? entry.data : entry;
  return typeof data === 'string' ? data.length : JSON.stringify(data ?? null).length;
}

function leftOut(bytes: number): CellOutput {
  const data = `[${Math.ceil(bytes / 1024)} KiB of output are left out: the notebook's outputs are too large for one file]`;
  return { channel: 'output', mimetype: 'text/plain', data, timestamp: Date.now() / 1000 };
}
