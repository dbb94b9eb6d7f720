/** The log of the writes and flushes of processes to the file of a store (`write-recorder.c`), with notes of the test between its entries. */
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { DATA_FILE } from '#storage/disk/store-folder.ts';

export type LogEntry =
  /** Bytes are given to the system, which may put them on the disk from now on. */
  | { readonly kind: 'write'; readonly offset: number; readonly data: Buffer; readonly token: bigint }
  /** A write to a descriptor that flushes by itself (O_DSYNC) has returned. */
  | { readonly kind: 'written'; readonly token: bigint }
  | { readonly kind: 'flushing' | 'flush'; readonly token: bigint }
  | { readonly kind: 'size'; readonly bytes: number }
  /** The folder of the file was flushed. */
  | { readonly kind: 'folder' }
  /** A note of the test: a change has begun, or was acknowledged. */
  | { readonly kind: 'begun' | 'acknowledged'; readonly text: string };

const HEAD_BYTES = 24;
const COMPILER = '/usr/bin/cc';
const SOURCE = join(import.meta.dirname, '../../../../test/support/store/write-recorder.c');

/** Why nothing can be recorded on this machine; undefined when it can. */
export const WHY_NOT_RECORDED = existsSync(COMPILER)
  ? undefined
  : `there is no C compiler, ${COMPILER}, for the recorder of writes`;

/** Compiles the recorder into `folder`, and returns its path. */
export function compileRecorder(folder: string): string {
  const library = join(folder, 'write-recorder.so');
  execFileSync(COMPILER, ['-shared', '-fPIC', '-O2', '-Wall', '-o', library, SOURCE]);
  return library;
}

/** Returns the environment of a process that writes the store in the folder `store` and is recorded. */
export function recordedEnvironment(recorder: string, store: string, log: string): Record<string, string> {
  return {
    LD_PRELOAD: recorder,
    RECORDED_FOLDER: store,
    RECORDED_FILE: join(store, DATA_FILE),
    RECORD_LOG: log,
  };
}

/** Adds notes to a log that other processes write as well. */
export class LogNotes implements Disposable {
  readonly #descriptor: number;

  constructor(log: string) {
    this.#descriptor = openSync(log, 'a', 0o600);
  }

  begun(text: string): void {
    this.#append('B', text);
  }

  acknowledged(text: string): void {
    this.#append('A', text);
  }

  #append(kind: string, text: string): void {
    const data = Buffer.from(text);
    const head = Buffer.alloc(HEAD_BYTES);
    head.writeUInt32LE(kind.charCodeAt(0), 0);
    head.writeUInt32LE(data.length, 4);
    writeSync(this.#descriptor, Buffer.concat([head, data]));
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** Returns the entries of a log. Throws when it cannot be complete. */
export function readLog(log: string): LogEntry[] {
  const bytes = readFileSync(log);
  const entries: LogEntry[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32LE(at + 4);
    const offset = Number(bytes.readBigUInt64LE(at + 8));
    const token = bytes.readBigUInt64LE(at + 16);
    const data = bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length);
    entries.push(entryOf(String.fromCharCode(bytes.readUInt32LE(at)), { offset, token, data }));
    at += HEAD_BYTES + length;
  }
  return entries;
}

function entryOf(
  kind: string,
  { offset, token, data }: { offset: number; token: bigint; data: Buffer },
): LogEntry {
  if (kind === 'W') return { kind: 'write', offset, data, token };
  if (kind === 'w') return { kind: 'written', token };
  if (kind === 'f') return { kind: 'flushing', token };
  if (kind === 'F') return { kind: 'flush', token };
  if (kind === 'S') return { kind: 'size', bytes: offset };
  if (kind === 'D') return { kind: 'folder' };
  if (kind === 'B') return { kind: 'begun', text: String(data) };
  if (kind === 'A') return { kind: 'acknowledged', text: String(data) };
  if (kind === 'M') throw new Error('The file is written through memory, which cannot be recorded.');
  throw new Error(`A write at ${offset} failed or was not recorded.`);
}
