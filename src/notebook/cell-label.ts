import { configOf } from './document.ts';
import type { NotebookView, ViewCell } from './view.ts';

/** Returns what people call the cell: its name, or else its id. */
export function labelOf({ id, options }: Pick<ViewCell, 'id' | 'options'>): string {
  const { name } = configOf(options);
  return name === '' || name === '_' ? id : name;
}

/** Returns what calls the cells of a notebook by their names, or else by their ids. */
export function labelsOf(view: NotebookView): (cellId: string) => string {
  return (id) => labelOf(view.get(id) ?? { id, options: {} });
}
