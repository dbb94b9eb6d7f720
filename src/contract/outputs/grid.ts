import type { OutputTable } from '../wire/output.ts';

/** A table as texts, from the server's rows, from marimo's own element or from HTML. */
export interface Grid {
  readonly headings: readonly (readonly string[])[];
  readonly rows: readonly (readonly string[])[];
  /** The number of further rows. */
  readonly moreRows?: number;
  readonly moreColumns?: number;
}

/** Returns the first rows of a table as the server describes it. */
export function gridOf({ columns, rows, rowCount, columnCount }: OutputTable): Grid {
  return {
    headings: [columns.map(({ name }) => name)],
    rows: rows.map((row) => row.map(gridValueText)),
    moreRows: Math.max(0, rowCount - rows.length),
    moreColumns: Math.max(0, columnCount - columns.length),
  };
}

/** Returns the text of a value in a cell of a table. A missing value is empty. */
export function gridValueText(value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value !== 'object') return String(value);
  const members = Object.entries(value);
  // marimo writes an integer beyond 2^53 as `{ $bigint }`.
  return members.length === 1 && members[0]?.[0] === '$bigint'
    ? String(members[0][1])
    : JSON.stringify(value);
}
