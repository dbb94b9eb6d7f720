import { table } from './table.ts';

/** Where a command writes: results on `out`, everything else on `err`. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Whether people see `out` directly, in colours. */
  readonly color: boolean;
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
  };
}
