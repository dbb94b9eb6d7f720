/** The cells of the corpus whose outputs in Troupe differ from marimo's, and the reason. All other cells are equal. */
import type { Member } from './shown-cell.ts';

/** The members of one cell that differ, and the reason. `cell` counts from 0. */
export interface Difference {
  readonly cell: number;
  readonly members: readonly Member[];
  readonly reason: string;
}

const RANDOM = 'It draws random numbers without a seed: two runs in marimo differ as well.';

/** The differences by the name of the notebook. */
export const DIFFERENCES: Readonly<Record<string, readonly Difference[]>> = {
  'tutorials/fileformat.py': [
    {
      cell: 20,
      members: ['status', 'outputs', 'console'],
      reason:
        'It prints its own file. A notebook of a server has a place among the files of its workspace, and is none of them.',
    },
    { cell: 21, members: ['status', 'outputs'], reason: 'It needs the cell before.' },
  ],
  'tutorials/for_jupyter_users.py': [
    {
      cell: 19,
      members: ['outputs'],
      reason:
        'It needs a cell that cannot run. marimo runs it all the same, up to a NameError; here it says which cell cannot run, and why.',
    },
  ],
  'tutorials/markdown_format.md': [{ cell: 19, members: ['outputs'], reason: RANDOM }],
  'tutorials/plots.py': [{ cell: 21, members: ['outputs'], reason: RANDOM }],
  'snippets/matplotlib-4.py': [{ cell: 2, members: ['outputs'], reason: RANDOM }],
  'snippets/matplotlib-8.py': [{ cell: 2, members: ['outputs'], reason: RANDOM }],
  'snippets/matplotlib-9.py': [{ cell: 2, members: ['outputs'], reason: RANDOM }],
  'snippets/polars-10.py': [{ cell: 1, members: ['outputs'], reason: RANDOM }],
  'snippets/polars-4.py': [{ cell: 1, members: ['outputs'], reason: RANDOM }],
  'snippets/polars-7.py': [{ cell: 1, members: ['outputs'], reason: RANDOM }],
  'snippets/polars-9.py': [{ cell: 1, members: ['outputs'], reason: RANDOM }],
  'documentation/bokeh-model-structure.py': [{ cell: 4, members: ['outputs'], reason: RANDOM }],
  'own/ipython-display.py': [
    {
      cell: 7,
      members: ['outputs'],
      reason:
        'IPython lets _repr_json_ return its data with metadata. marimo shows both as a list, here it is the data.',
    },
  ],
};

/** Notebooks of the installed package that are not run, and why. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  'snippets/duckdb-3.py': 'The rows of its queries have no order: two runs in marimo may differ as well.',
  'tutorials/sql.py': 'It loads an extension of DuckDB from the network.',
  'snippets/huggingface-1.py': 'It reads data from the network.',
};
