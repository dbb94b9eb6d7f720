/**
 * Packs rows of PostgreSQL by column, for notebooks that make frames: numbers, dates and texts become arrays which a
 * kernel uses without making a Python value for each cell. `columns.py` of the notebook modules is the reader.
 *
 * Only values that the kernel would read as the same value from JSON are packed. A column with any other value in this
 * batch, such as a date before year 1, is sent as JSON in this batch.
 */
import { isUtf8 } from 'node:buffer';
import type { ColumnForm, ColumnType, PackedBatch, ResultColumn } from '../../rows.ts';
import { int32, jsonOf } from './json.ts';
import { MESSAGE_HEAD_BYTES } from './messages.ts';
import { NOTHING, readDate, readFloat, readInteger, readMoment } from './numbers.ts';

/** The array of one column. */
interface Packer {
  readonly form: ColumnForm;
  /** Adds a value. Returns false when the column cannot hold it. */
  add(row: number, bytes: Buffer, start: number, end: number): boolean;
  addNull(row: number): void;
  /** Returns the bytes of all rows; `undefined` when the column cannot hold them after all. */
  end(): readonly Uint8Array[] | undefined;
}

type WholeForm = 'integer' | 'timestamp' | 'timestamptz';
type ReadWhole = (bytes: Buffer, start: number, end: number) => number | bigint;
type MakePacker = (rows: number, bytes: number) => Packer;

const PACKERS: Readonly<Partial<Record<ColumnType, MakePacker>>> = {
  boolean: (rows) => new Booleans(rows),
  integer: (rows) => new Integers(rows, 'integer', readInteger),
  float: (rows) => new Floats(rows),
  text: (rows, bytes) => new Texts(rows, bytes),
  date: (rows) => new Dates(rows),
  timestamp: (rows) => new Integers(rows, 'timestamp', readLocalMoment),
  timestamptz: (rows) => new Integers(rows, 'timestamptz', readUtcMoment),
};

/** Returns the packed columns of these parts: `rows` whole `DataRow` messages in all. */
export function packColumns(
  columns: readonly ResultColumn[],
  parts: readonly Buffer[],
  rows: number,
): PackedBatch {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  const packers = columns.map(({ type }) => PACKERS[type]?.(rows, bytes / columns.length));
  fill(packers, parts);
  const packed = packers.map((packer) => packer?.end());
  const forms = packers.map((packer, at) => (packed[at] === undefined ? 'rows' : packer!.form));
  const others = forms.flatMap((form, at) => (form === 'rows' ? [at] : []));
  const json = others.length > 0 ? [jsonOf(columns, parts, new Set(others))] : [];
  return { forms, parts: [...packed.flatMap((one) => one ?? []), ...json] };
}

/** Gives every value to the packer of its column, and drops a packer that cannot hold a value. */
function fill(packers: (Packer | undefined)[], parts: readonly Buffer[]): void {
  const count = packers.length;
  let row = 0;
  for (const bytes of parts) {
    for (let at = 0; at < bytes.length; row++) {
      const end = at + 1 + int32(bytes, at + 1);
      let value = at + MESSAGE_HEAD_BYTES + 2;
      for (let column = 0; column < count; column++) {
        const length = value + 4 <= end ? int32(bytes, value) : -1;
        value += 4;
        const packer = packers[column];
        // A wrong length from the server must not reach beyond its row.
        if (length < 0 || value + length > end) {
          packer?.addNull(row);
          continue;
        }
        if (packer !== undefined && !packer.add(row, bytes, value, value + length))
          packers[column] = undefined;
        value += length;
      }
      at = end;
    }
  }
}

/** The rows that have no value: one byte for each row, made with the first null. */
class Nulls {
  readonly #rows: number;
  #marks: Uint8Array | undefined;

  constructor(rows: number) {
    this.#rows = rows;
  }

  add(row: number): void {
    this.#marks ??= new Uint8Array(this.#rows);
    this.#marks[row] = 1;
  }

  /** The marks of all rows; none when there is no null. */
  get marks(): readonly Uint8Array[] {
    return this.#marks === undefined ? [] : [this.#marks];
  }
}

/** Whole numbers of 64 bits, as pairs of their lower and their upper half. Processors of both kinds store the lower one first. */
class Integers implements Packer {
  readonly #form: WholeForm;
  readonly #read: ReadWhole;
  readonly #halves: Int32Array;
  readonly #nulls: Nulls;

  constructor(rows: number, form: WholeForm, read: ReadWhole) {
    this.#form = form;
    this.#read = read;
    this.#halves = new Int32Array(2 * rows);
    this.#nulls = new Nulls(rows);
  }

  get form(): ColumnForm {
    return withNulls(this.#form, this.#nulls);
  }

  add(row: number, bytes: Buffer, start: number, end: number): boolean {
    const read = this.#read;
    const value = read(bytes, start, end);
    if (value === NOTHING) return false;
    if (typeof value === 'number') {
      this.#halves[2 * row] = value | 0;
      this.#halves[2 * row + 1] = Math.floor(value / 2 ** 32);
    } else {
      this.#halves[2 * row] = Number(BigInt.asIntN(32, value));
      this.#halves[2 * row + 1] = Number(value >> 32n);
    }
    return true;
  }

  addNull(row: number): void {
    this.#nulls.add(row);
  }

  end(): readonly Uint8Array[] {
    return [...this.#nulls.marks, bytesOf(this.#halves)];
  }
}

class Floats implements Packer {
  readonly #values: Float64Array;
  readonly #nulls: Nulls;

  constructor(rows: number) {
    this.#values = new Float64Array(rows);
    this.#nulls = new Nulls(rows);
  }

  get form(): ColumnForm {
    return withNulls('float', this.#nulls);
  }

  add(row: number, bytes: Buffer, start: number, end: number): boolean {
    const value = readFloat(bytes, start, end);
    if (value === NOTHING) return false;
    this.#values[row] = value;
    return true;
  }

  addNull(row: number): void {
    this.#nulls.add(row);
  }

  end(): readonly Uint8Array[] {
    return [...this.#nulls.marks, bytesOf(this.#values)];
  }
}

/** Days since 1970-01-01. */
class Dates implements Packer {
  readonly #days: Int32Array;
  readonly #nulls: Nulls;

  constructor(rows: number) {
    this.#days = new Int32Array(rows);
    this.#nulls = new Nulls(rows);
  }

  get form(): ColumnForm {
    return withNulls('date', this.#nulls);
  }

  add(row: number, bytes: Buffer, start: number, end: number): boolean {
    const days = end - start === DATE_CHARS ? readDate(bytes, start) : NOTHING;
    if (days === NOTHING) return false;
    this.#days[row] = days;
    return true;
  }

  addNull(row: number): void {
    this.#nulls.add(row);
  }

  end(): readonly Uint8Array[] {
    return [...this.#nulls.marks, bytesOf(this.#days)];
  }
}

/** A byte for each row: 0 is false, 1 is true, 2 is null. */
class Booleans implements Packer {
  readonly #values: Uint8Array;
  #form: ColumnForm = 'boolean';

  constructor(rows: number) {
    this.#values = new Uint8Array(rows);
  }

  get form(): ColumnForm {
    return this.#form;
  }

  add(row: number, bytes: Buffer, start: number): boolean {
    this.#values[row] = bytes[start] === TRUE_LETTER ? 1 : 0;
    return true;
  }

  addNull(row: number): void {
    this.#values[row] = 2;
    this.#form = 'boolean?';
  }

  end(): readonly Uint8Array[] {
    return [this.#values];
  }
}

/** The length of each text in bytes, -1 for null, and then the bytes of all texts. */
class Texts implements Packer {
  readonly #lengths: Int32Array;
  #data: Buffer;
  #size = 0;
  #form: ColumnForm = 'text';

  constructor(rows: number, bytes: number) {
    this.#lengths = new Int32Array(rows);
    this.#data = Buffer.allocUnsafe(Math.ceil(bytes));
  }

  get form(): ColumnForm {
    return this.#form;
  }

  add(row: number, bytes: Buffer, start: number, end: number): boolean {
    const length = end - start;
    this.#lengths[row] = length;
    const size = this.#size + length;
    if (size > this.#data.length) this.#grow(size);
    const data = this.#data;
    if (length > SHORT_CHARS) bytes.copy(data, this.#size, start, end);
    else for (let from = start, to = this.#size; from < end; ) data[to++] = bytes[from++]!;
    this.#size = size;
    return true;
  }

  addNull(row: number): void {
    this.#lengths[row] = -1;
    this.#form = 'text?';
  }

  end(): readonly Uint8Array[] | undefined {
    const data = this.#data.subarray(0, this.#size);
    return isUtf8(data) && this.#areWhole(data) ? [bytesOf(this.#lengths), data] : undefined;
  }

  /** Returns whether no text begins within a letter, so that each text is UTF-8 if all of them together are. */
  #areWhole(data: Buffer): boolean {
    let at = 0;
    for (const length of this.#lengths) {
      if (length <= 0) continue;
      if ((data[at]! & CONTINUATION_BITS) === CONTINUATION) return false;
      at += length;
    }
    return true;
  }

  #grow(size: number): void {
    const grown = Buffer.allocUnsafe(Math.max(size, this.#data.length * 2));
    this.#data.copy(grown, 0, 0, this.#size);
    this.#data = grown;
  }
}

/** The upper bits of each byte of a letter but the first, in UTF-8. */
const [CONTINUATION_BITS, CONTINUATION] = [0xc0, 0x80];
const TRUE_LETTER = 0x74;
const DATE_CHARS = 10;
/** Copying so few bytes one by one is faster than a call of `Buffer`. */
const SHORT_CHARS = 32;

function readLocalMoment(bytes: Buffer, start: number, end: number): number | bigint {
  return readMoment(bytes, start, end, false);
}

function readUtcMoment(bytes: Buffer, start: number, end: number): number | bigint {
  return readMoment(bytes, start, end, true);
}

function withNulls(form: WholeForm | 'float' | 'date', nulls: Nulls): ColumnForm {
  return nulls.marks.length > 0 ? `${form}?` : form;
}

function bytesOf(values: Int32Array | Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
