/** A notebook in its stored form and in the API, and the pure edits on it. */
import { AppError } from '#src/base/errors/errors.ts';
import type { NotebookId } from '#src/base/ids.ts';
import type { Cell, Notebook, Serialization, SerializationInput } from '#src/contract/wire/notebook.ts';
import type { CellChanges } from '#src/contract/wire/run.ts';

export interface NotebookDocument extends Omit<Notebook, 'id' | 'title' | 'url'> {
  readonly id: NotebookId;
}

/** Returns whether a cell may have this id. The kernel's own name for code outside of cells is reserved. */
export function isCellId(text: string): boolean {
  return /^(?!__scratch__$)\P{Cc}{1,128}$/u.test(text);
}

/** Fills in defaults; `valid` says whether every cell parses. Throws `duplicate_cell` when a cell id appears twice. */
export function normalizeSerialization(input: SerializationInput, valid: boolean): Serialization {
  const cells = (input.cells ?? []).map(({ cell_id, code, options }) => ({
    cell_id,
    code,
    options: options ?? {},
  }));
  refuseDuplicates(cells);
  return {
    version: input.version ?? '1',
    app: { options: input.app?.options ?? {} },
    cells,
    valid,
    ui_values: input.ui_values ?? {},
  };
}

function refuseDuplicates(cells: readonly Cell[]): void {
  const seen = new Set<string>();
  cells.forEach((cell, index) => {
    if (seen.has(cell.cell_id)) {
      const path = `/serialization/cells/${index}/cell_id`;
      throw new AppError('duplicate_cell', `The cell id ${JSON.stringify(cell.cell_id)} appears twice.`, {
        errors: [{ path, message: 'must be unique within the notebook' }],
      });
    }
    seen.add(cell.cell_id);
  });
}

/** The per-cell settings that the API takes, as members of a cell's saved options. */
export type CellConfig = Omit<CellChanges, 'name'> & { readonly name?: string };

const OPTION_OF = {
  disabled: 'disabled',
  hideCode: 'hide_code',
  column: 'column',
  name: 'name',
  expandOutput: 'expand_output',
} as const;

const DEFAULT_OF: Readonly<Record<keyof CellConfig, unknown>> = {
  disabled: false,
  hideCode: false,
  column: null,
  name: '',
  expandOutput: false,
};

/** Returns the options with `config` applied. A setting with its default value is not stored. */
export function withConfig(
  options: Readonly<Record<string, unknown>>,
  config: CellConfig,
): Readonly<Record<string, unknown>> {
  const result: Record<string, unknown> = { ...options };
  for (const key of Object.keys(OPTION_OF) as (keyof CellConfig)[]) {
    if (config[key] === undefined) continue;
    if (config[key] === DEFAULT_OF[key]) delete result[OPTION_OF[key]];
    else result[OPTION_OF[key]] = config[key];
  }
  return result;
}

/** Returns the options of a cell with their defaults. A member of a wrong type counts as absent. */
export function configOf(options: Readonly<Record<string, unknown>>): Required<CellConfig> {
  const { disabled, hide_code, column, name, expand_output } = options;
  return {
    disabled: disabled === true,
    hideCode: hide_code === true,
    column: Number.isSafeInteger(column) ? (column as number) : null,
    name: typeof name === 'string' ? name : '',
    expandOutput: expand_output === true,
  };
}

/** Returns the serialization with another title; undefined does not change the title, null removes it. */
export function withTitle(serialization: Serialization, title: string | null | undefined): Serialization {
  if (title === undefined) return serialization;
  const { app_title: _, ...options } = serialization.app.options;
  return { ...serialization, app: { options: title === null ? options : { ...options, app_title: title } } };
}

/** Returns the title in the notebook's app options. */
export function titleOf(serialization: Serialization): string | null {
  const title = serialization.app.options.app_title;
  return typeof title === 'string' ? title : null;
}
