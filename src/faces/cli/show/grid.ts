import type { Grid } from '#src/contract/outputs/grid.ts';
import { safeLine } from '../safe-text.ts';
import type { Style } from '../style.ts';
import { cutTo, widthOf } from './width.ts';

export interface GridLimits {
  /** The width of the terminal; undefined means no limit. */
  readonly columns: number | undefined;
  readonly rows: number;
}

const CELL_LIMIT = 50;
const GAP = '  ';

/** Returns data in aligned columns, numbers to the right. Columns that do not fit and rows beyond the limit are counted. */
export function gridText(grid: Grid, limits: GridLimits, style: Style): string {
  const headings = grid.headings.map(plainRow);
  const rows = grid.rows.slice(0, limits.rows).map(plainRow);
  const lines = [...headings, ...rows];
  const count = lines.reduce((most, row) => Math.max(most, row.length), 0);
  const widths = Array.from({ length: count }, (_, at) =>
    lines.reduce((most, row) => Math.max(most, widthOf(row[at] ?? '')), 1),
  );
  const isRight = widths.map((_, at) => rows.length > 0 && rows.every((row) => isNumeric(row[at] ?? '')));
  const shown = fitting(widths, limits.columns);
  const line = (row: readonly string[]) =>
    widths
      .slice(0, shown)
      .map((width, at) => {
        const text = row[at] ?? '';
        const space = ' '.repeat(width - widthOf(text));
        return isRight[at] ? space + text : text + space;
      })
      .concat(shown < count && row.length > shown ? ['…'] : [])
      .join(GAP)
      .trimEnd();
  const hidden = grid.rows.length - rows.length + (grid.moreRows ?? 0);
  const hiddenColumns = count - shown + (grid.moreColumns ?? 0);
  const notes = [
    ...(hidden > 0 ? [`${hidden} more ${hidden === 1 ? 'row' : 'rows'}`] : []),
    ...(hiddenColumns > 0 ? [`${hiddenColumns} more ${hiddenColumns === 1 ? 'column' : 'columns'}`] : []),
  ];
  return [
    ...headings.map((row) => style.bold(line(row))),
    ...rows.map(line),
    ...(notes.length > 0 ? [style.dim(`… ${notes.join(', ')}`)] : []),
  ].join('\n');
}

function plainRow(row: readonly string[]): string[] {
  return row.map((text) => cutTo(safeLine(text).replace(/\s+/g, ' ').trim(), CELL_LIMIT));
}

function isNumeric(text: string): boolean {
  return /^([-+]?[\d.,_]+(e[-+]?\d+)?%?|-|nan|inf|null|none|\.\.\.)?$/i.test(text);
}

/** Returns how many columns fit, at least one. The ellipsis for the other columns has to fit as well. */
function fitting(widths: readonly number[], columns: number | undefined): number {
  const needed = (count: number) =>
    widths.slice(0, count).reduce((sum, width) => sum + width + GAP.length, 0) - GAP.length;
  if (columns === undefined || needed(widths.length) <= columns) return widths.length;
  let count = widths.length - 1;
  while (count > 1 && needed(count) + GAP.length + 1 > columns) count--;
  return Math.max(count, 1);
}
