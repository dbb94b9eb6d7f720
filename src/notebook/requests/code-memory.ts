import { preparedJson } from '#src/base/json/json-write.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import { jsonBytesOf } from '../saved/cells-json.ts';

/** New code of a cell. Without an id, the cell is yet to be made. */
interface NewCode {
  readonly cellId?: string | null | undefined;
  readonly code?: string | null | undefined;
}

/**
 * Returns the approximate bytes of JSON of long code that was prepared (`prepareStrings`), together
 * with the cells of the notebook that gets it, for `reserveMemory`. A notebook that is not in
 * memory counts as empty.
 */
export function sizeWith(
  live: LiveNotebook | undefined,
  changes: readonly NewCode[],
): { readonly codeBytes: number; readonly cellBytes: number } {
  const withCode = changes.filter(({ code }) => typeof code === 'string');
  const codeBytes = withCode.reduce(
    (sum, { code }) => sum + (preparedJson.get(code ?? '')?.byteLength ?? 0),
    0,
  );
  const changed = new Set(withCode.map(({ cellId }) => cellId));
  const saved = live?.document.serialization.cells ?? [];
  const otherBytes = jsonBytesOf(saved.filter((cell) => !changed.has(cell.cell_id)));
  return { codeBytes, cellBytes: otherBytes + codeBytes };
}
