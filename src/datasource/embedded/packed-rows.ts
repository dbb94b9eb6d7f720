/**
 * Rows as the process of an embedded database encodes them (src/confined/python/engines/rows.py): JSON that goes to a
 * notebook unchanged, and is decoded only for readers of values.
 */
import { DatasourceFailure } from '../failure.ts';
import { type Cell, type Column, integerCell } from '../rows.ts';

const HEAD_BYTES = 9;
const MARK = 'R'.charCodeAt(0);

export class PackedRows {
  /** The number of rows. */
  readonly count: number;
  readonly #marks: Buffer;
  readonly #json: Buffer;
  readonly #columns: readonly Column[];

  /** Throws `DatasourceFailure` for bytes that are not rows. */
  constructor(bytes: Buffer, columns: readonly Column[]) {
    if (bytes.length < HEAD_BYTES || bytes[0] !== MARK) throw new DatasourceFailure('failed');
    const end = HEAD_BYTES + bytes.readUInt32LE(5);
    if (end > bytes.length) throw new DatasourceFailure('failed');
    this.count = bytes.readUInt32LE(1);
    this.#marks = bytes.subarray(HEAD_BYTES, end);
    this.#json = bytes.subarray(end);
    this.#columns = columns;
  }

  /** Returns a JSON array of the rows, as they are sent to a kernel. */
  json(): Uint8Array {
    return this.#json;
  }

  /** Throws `DatasourceFailure` for malformed rows. */
  rows(): Cell[][] {
    const rows = parsed(this.#json);
    const marked = new Map<number, Map<number, unknown>>();
    for (const mark of parsed(this.#marks)) {
      const [row, column, kind] = list(mark);
      const kinds = marked.get(Number(row)) ?? new Map<number, unknown>();
      marked.set(Number(row), kinds.set(Number(column), kind));
    }
    const usual = this.#columns.map(({ type }) => type);
    return rows.map((row, number) => {
      const kinds = marked.get(number);
      return list(row).map((cell, at) =>
        typeof cell === 'string' ? meant(cell, kinds?.get(at) ?? usual[at]) : plain(cell),
      );
    });
  }
}

function parsed(json: Buffer): unknown[] {
  try {
    return list(JSON.parse(json.toString()));
  } catch {
    throw new DatasourceFailure('failed');
  }
}

function list(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw new DatasourceFailure('failed');
}

function plain(cell: unknown): Cell {
  if (cell === null || typeof cell === 'boolean' || typeof cell === 'number') return cell;
  throw new DatasourceFailure('failed');
}

/** Returns the value that a text represents. */
function meant(text: string, kind: unknown): Cell {
  switch (kind) {
    case 'integer':
      if (!/^-?\d{1,1000}$/.test(text)) throw new DatasourceFailure('failed');
      return integerCell(text);
    case 'float':
      return Number(text);
    case 'bytes':
      return new Uint8Array(Buffer.from(text, 'base64'));
    default:
      return text;
  }
}
