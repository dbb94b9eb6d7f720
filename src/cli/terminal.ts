import { table } from './table.ts';

/** Where a command writes: results on `out`, everything else on `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether people see `out` directly, in colours. */
  readonly color: boolean;
  /** Of the terminal that shows `out`; absent when it goes to a file or a program. */
  readonly columns?: number | undefined;
  /** Whether a line on `err` can be replaced while something is going on. */
  readonly live?: boolean;
}

export interface Column<T> {
  readonly title: string;
  readonly of: (item: T) => string | null;
}

/** Writes `items` as one JSON document, or as a table. */
export function printList<T>(
  terminal: Terminal,
  items: readonly T[],
  columns: readonly Column<T>[],
  json: boolean,
): void {
  if (json) {
    printJson(terminal, items);
    return;
  }
  const rows = items.map((item) => columns.map((column) => column.of(item) ?? '-'));
  terminal.out(
    table(
      columns.map(({ title }) => title),
      rows,
      terminal.color,
    ),
  );
}

/** One value on a line of its own, for lists that have no end. */
export function printJsonLine(terminal: Terminal, value: unknown): void {
  terminal.out(`${JSON.stringify(value)}\n`);
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${JSON.stringify(value, null, 2)}\n`);
}

/** The terminal of this process. A reader that goes away, such as `head`, ends it quietly. */
export function processTerminal(): Terminal {
  const { stdout, stderr } = process;
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit();
    });
  }
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    color: stdout.isTTY === true && stdout.hasColors(),
    columns: stdout.isTTY === true ? stdout.columns : undefined,
    live: stderr.isTTY === true && stderr.hasColors(),
  };
}
