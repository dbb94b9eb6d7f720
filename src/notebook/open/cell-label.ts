import { configOf } from '../saved/document.ts';
import type { NotebookView, ViewCell } from './view.ts';

/** Returns the cell's name for people: its name, or else its id. */
export function labelOf({ id, options }: Pick<ViewCell, 'id' | 'options'>): string {
  const { name } = configOf(options);
  return name === '' || name === '_' ? id : name;
}

/** Returns a function from the id of a notebook's cell to its name, or else its id. */
export function labelsOf(view: NotebookView): (cellId: string) => string {
  return (id) => labelOf(view.get(id) ?? { id, options: {} });
}
