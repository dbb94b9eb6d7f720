/**
 * Memory for large records. The system provides memory page by page when a process first writes to it, which takes
 * longer than copying a record into it. So a caller can reserve memory for the records of a later turn of the event
 * loop; the memory is written to once before that turn.
 */
import { inSlices } from '#src/base/async/slices.ts';

const MIN_RESERVED_BYTES = 1024 * 1024;
/** The most bytes of a record in addition to its JSON. */
const SLACK_BYTES = 128 * 1024;
const STEP_BYTES = 256 * 1024;
/** A reserved buffer is not used for a record that would leave most of the buffer unused. */
const MAX_WASTE = 2;
const NOTHING: Disposable = { [Symbol.dispose]: () => undefined };

/** Buffers that no record uses yet. Of the process, as its memory is; a record takes any of them. */
const reserved: Buffer[] = [];

/** Resolves once memory for records with this many bytes of JSON is reserved; it stays reserved until the result is disposed of. */
export async function reserveMemory(...jsonBytes: readonly number[]): Promise<Disposable> {
  const large = jsonBytes.filter((bytes) => bytes >= MIN_RESERVED_BYTES);
  if (large.length === 0) return NOTHING;
  const buffers = await inSlices(writtenBuffers(large));
  reserved.push(...buffers);
  return {
    [Symbol.dispose]() {
      for (const buffer of buffers)
        if (reserved.includes(buffer)) reserved.splice(reserved.indexOf(buffer), 1);
    },
  };
}

function* writtenBuffers(jsonBytes: readonly number[]): Generator<undefined, Buffer[]> {
  const buffers: Buffer[] = [];
  for (const bytes of jsonBytes) {
    const buffer = Buffer.allocUnsafeSlow(bytes + SLACK_BYTES);
    for (let at = 0; at < buffer.byteLength; at += STEP_BYTES) {
      buffer.subarray(at, at + STEP_BYTES).fill(0);
      yield;
    }
    buffers.push(buffer);
  }
  return buffers;
}

/** Returns memory for a record, which may have been reserved. Its content is arbitrary. */
export function recordMemory(bytes: number): Buffer {
  if (reserved.length === 0) return Buffer.allocUnsafe(bytes);
  const fits = ({ byteLength }: Buffer) => byteLength >= bytes && byteLength <= bytes * MAX_WASTE;
  const index = reserved.findIndex(fits);
  return index < 0 ? Buffer.allocUnsafe(bytes) : reserved.splice(index, 1)[0]!.subarray(0, bytes);
}
