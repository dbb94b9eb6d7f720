import { EXIT } from './exit-code.ts';
import { FoldedText, safeJson, safeText, TerminalText } from './safe-text.ts';
import { table } from './table.ts';

/** The two streams of a command: results go to `out`, everything else to `err`. */
export type StreamName = 'out' | 'err';

/** The destination of a `Terminal`: the streams of this process, or their substitutes in a test. Text is written unchecked. */
export interface TerminalDevice {
  out(text: string): void;
  err(text: string): void;
  /** Writes bytes to `out` unchanged. Resolves when more may be written. If absent, bytes are written as text. */
  bytes?(piece: Uint8Array): Promise<void>;
  /** Whether `out` is a terminal that shows colours. */
  readonly color: boolean;
  /**
   * The width of the terminal that shows `out`; absent when `out` goes to a file or a program, or
   * when the width is unknown.
   */
  readonly columns?: number | undefined;
  /** Whether a line on `err` can be replaced while something is going on. */
  readonly live?: boolean;
  /** Whether a terminal shows each stream. Absent: neither. */
  readonly screens?: Readonly<Record<StreamName, boolean>>;
}

/**
 * The output of a command. All text for terminals passes `safeText` here, so no command can forget it. A file or another program
 * gets the bytes of commands unchanged. Of the text of programs, it gets the last version of each line, without escape sequences.
 */
export interface Terminal extends Omit<TerminalDevice, 'screens' | 'bytes'> {
  /** Writes the content of a file to `out`: as safe text on a terminal, elsewhere unchanged. */
  content(pieces: AsyncIterable<Uint8Array>): Promise<void>;
  /**
   * Writes the output of a program. On a terminal, a carriage return begins the line again; elsewhere an open line is
   * held back until it ends, other text is written, or `flush` is called.
   */
  printed(stream: StreamName, text: string): void;
  /** Writes the text that `printed` holds back. */
  flush(): void;
  /** Erases the open line on `err`. Only for a terminal that is `live`. */
  eraseLine(): void;
}

const ERASE_LINE = '\r\u001b[2K';

/** Returns the terminal that writes to a device. */
export function terminalOn(device: TerminalDevice): Terminal {
  const { color, columns, live = false, screens = { out: false, err: false } } = device;
  const colors = { out: color, err: live };
  const printed = (name: StreamName) =>
    new TerminalText(colors[name] ? ERASE_LINE : '\r', { colors: colors[name] });
  const open = { out: printed('out'), err: printed('err') };
  const held = { out: new FoldedText(), err: new FoldedText() };
  const flush = () => {
    for (const name of ['out', 'err'] as const) {
      const rest = held[name].flush();
      if (rest !== '') device[name](rest);
    }
  };
  const write = (name: StreamName) => (text: string) => {
    flush();
    open[name].drop();
    device[name](screens[name] ? safeText(text, { colors: colors[name] }) : text);
  };
  return {
    out: write('out'),
    err: write('err'),
    color,
    columns: columns === undefined || columns < 1 ? undefined : columns,
    live,
    printed(name, text) {
      const shown = screens[name] ? open[name].take(text) : held[name].take(text);
      if (shown !== '') device[name](shown);
    },
    flush,
    async content(pieces) {
      flush();
      const decoder = new TextDecoder();
      for await (const piece of pieces) {
        if (screens.out || device.bytes === undefined) write('out')(decoder.decode(piece, { stream: true }));
        else await device.bytes(piece);
      }
    },
    eraseLine: () => device.err(ERASE_LINE),
  };
}

export interface ListColumn<T> {
  readonly title: string;
  readonly of: (item: T) => string | null;
}

/** Writes `items` as one JSON document, or as a table. */
export function printList<T>(
  terminal: Terminal,
  items: readonly T[],
  columns: readonly ListColumn<T>[],
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

/** Writes one value on a line of its own, for lists without an end. */
export function printJsonLine(terminal: Terminal, value: unknown): void {
  terminal.out(`${safeJson(JSON.stringify(value))}\n`);
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.out(`${safeJson(JSON.stringify(value, null, 2))}\n`);
}

/** The errors of a stream whose reader, such as `head` or a terminal, has gone away. */
const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO']);

/**
 * The streams of this process. When a write fails, `hangUp` is called. The process then ends, unless `hangUp` returns that the
 * command ends in an orderly way. If only a reader has gone away, the process ends without a message.
 */
export function processDevice(hangUp: () => boolean): TerminalDevice {
  const { stdout, stderr } = process;
  const failed = new Set<NodeJS.WriteStream>();
  for (const stream of [stdout, stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (failed.has(stream)) return;
      failed.add(stream);
      const isGone = GONE.has(error.code);
      if (!isGone && !failed.has(stderr))
        stderr.write(`troupe: The output cannot be written: ${error.message}.\n`);
      if (!hangUp()) process.exit(isGone ? undefined : EXIT.failed);
    });
  }
  const write = (stream: NodeJS.WriteStream) => (text: string) => {
    if (!failed.has(stream)) stream.write(text);
  };
  return {
    out: write(stdout),
    err: write(stderr),
    bytes: (piece) =>
      new Promise((resolve) => {
        if (failed.has(stdout)) resolve();
        else stdout.write(piece, () => resolve());
      }),
    color: stdout.isTTY === true && stdout.hasColors(),
    columns: stdout.isTTY === true ? stdout.columns : undefined,
    live: stderr.isTTY === true && stderr.hasColors(),
    screens: { out: stdout.isTTY === true, err: stderr.isTTY === true },
  };
}
