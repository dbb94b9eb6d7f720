import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Style } from '../style.ts';

/** Returns a saved notebook as text: its properties, and the code of its cells. */
export function notebookText(notebook: Notebook, style: Style): string {
  const { id, createdAt, updatedBy, updatedAt, serialization, datasourceSlugs, variables } = notebook;
  const facts = [
    ['notebook', id],
    ['created', createdAt],
    ['updated', updatedBy === undefined ? updatedAt : `${updatedAt} by ${updatedBy}`],
    ['cells', `${serialization.cells.length}${serialization.valid ? '' : ', not all of which parse'}`],
    ...(datasourceSlugs.length > 0 ? [['datasources', datasourceSlugs.join(', ')]] : []),
    // Only the names are shown, because the values may be secrets.
    ...(Object.keys(variables).length > 0 ? [['variables', Object.keys(variables).join(', ')]] : []),
  ];
  const cells = serialization.cells.map(({ cell_id, code, options }) => {
    const { name, ...others } = options;
    const words = [
      style.bold(cell_id),
      ...(typeof name === 'string' && name !== '' && name !== '_' ? [name] : []),
      ...Object.keys(others).filter((key) => others[key] === true),
    ];
    return `\n${words.join('  ')}\n${code === '' ? style.dim('(empty)') : code}\n`;
  });
  return factLines(facts, style) + cells.join('');
}

/** Names and values in two columns. */
export function factLines(facts: readonly (readonly (string | undefined)[])[], style: Style): string {
  const width = Math.max(...facts.map(([name = '']) => name.length));
  return facts.map(([name = '', value = '']) => `${style.dim(name.padEnd(width))}  ${value}\n`).join('');
}
