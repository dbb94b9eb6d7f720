/**
 * Rows as the process of an embedded database encodes them (src/confined/python/engines/rows.py): JSON that goes to a
 * notebook unchanged, and is decoded only for readers of values.
 */
import { DatasourceFailure } from '../failure.ts';
import { integerCell, type ResultColumn, type RowValue } from '../rows.ts';

const HEAD_BYTES = 5;
const MARK = 'R'.charCodeAt(0);

export class PackedRows {
  /** The number of rows. */
  readonly count: number;
  readonly #json: Buffer;
  readonly #columns: readonly ResultColumn[];

  /** Throws `DatasourceFailure` for bytes that are not rows. */
  constructor(bytes: Buffer, columns: readonly ResultColumn[]) {
    if (bytes.length < HEAD_BYTES || bytes[0] !== MARK) throw new DatasourceFailure('failed');
    this.count = bytes.readUInt32LE(1);
    this.#json = bytes.subarray(HEAD_BYTES);
    this.#columns = columns;
  }

  /** Returns a JSON array of the rows, as they are sent to a kernel. */
  json(): Uint8Array {
    return this.#json;
  }

  /** Throws `DatasourceFailure` for malformed rows. */
  rows(): RowValue[][] {
    return parsed(this.#json).map((row) => list(row).map((cell, at) => cellOf(cell, this.#columns[at])));
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

function cellOf(cell: unknown, column: ResultColumn | undefined): RowValue {
  if (cell === null || typeof cell === 'boolean' || typeof cell === 'number') return cell;
  const isByCell = column?.byCell === true;
  if (typeof cell === 'string') return isByCell ? cell : meant(cell, column?.type);
  const [member, ...others] = Object.entries(Object(cell));
  if (!isByCell || member === undefined || others.length > 0 || typeof member[1] !== 'string')
    throw new DatasourceFailure('failed');
  return meant(member[1], member[0]);
}

/** Returns the value that a text represents. */
function meant(text: string, kind: unknown): RowValue {
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
