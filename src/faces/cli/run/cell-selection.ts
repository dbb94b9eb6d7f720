import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { CacheMode, ExecutionRequest } from '#src/contract/wire/run.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

/** How the cells are run. */
export interface ExecutionModes {
  readonly cacheMode: CacheMode;
  /** How cells that cannot run are treated. */
  readonly structuralErrors: 'refuse' | 'skip';
  readonly timeoutS?: number;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Returns a request to run the cells with these ids or names, or all cells. Throws `CommandFailure` for an unknown cell. */
export function requestFor(
  { serialization }: Pick<Notebook, 'serialization'>,
  asked: readonly string[] | undefined,
  modes: ExecutionModes,
): ExecutionRequest {
  if (asked === undefined) return { type: 'all', ...modes };
  const cells = cellIdsOf({ serialization }, asked).map((cellId) => ({ cellId }));
  return { type: 'cells', cells, ...modes };
}

/** Returns the ids of the cells with these ids or names, each once. Throws `CommandFailure` for an unknown cell. */
export function cellIdsOf(
  { serialization }: Pick<Notebook, 'serialization'>,
  asked: readonly string[],
): readonly string[] {
  const { cells } = serialization;
  const found = asked.map((word) => {
    const cell =
      cells.find(({ cell_id }) => cell_id === word) ?? cells.find(({ options }) => options.name === word);
    if (cell !== undefined) return cell.cell_id;
    const known = cells
      .map(({ cell_id, options }) => (isNamed(options.name) ? options.name : cell_id))
      .join(', ');
    throw new CommandFailure(`The notebook has no cell ${word}. Its cells are: ${known}`, EXIT.usage);
  });
  return [...new Set(found)];
}

function isNamed(name: unknown): name is string {
  return typeof name === 'string' && name !== '' && name !== '_';
}
