/** Describes a server that hangs: its threads, and the locks of its store. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { workersOf } from '#test/support/processes.ts';
import type { Victim } from './victim.ts';

const LAST_LINES = 15;
/** Where LMDB has the words of its locks: of the table of readers, and of writers. 0 is free, else the thread that has it. */
const LOCK_WORDS = { readers: 0x18, writers: 0x40 };

/** Returns lines for a report. The server must still run. */
export function autopsy(victim: Victim, dataDir: string): readonly string[] {
  return [
    ...victim.log.slice(-LAST_LINES).map((line) => JSON.stringify(line)),
    ...locks(join(dataDir, 'store', 'lock.mdb')),
    ...workersOf(victim.pid).flatMap(({ number, pid }) =>
      threads(pid).map((text) => `worker ${number}, ${text}`),
    ),
  ];
}

function locks(path: string): readonly string[] {
  return read(path, (bytes) =>
    Object.entries(LOCK_WORDS).map(
      ([name, at]) => `lock of ${name}: 0x${bytes.readUInt32LE(at).toString(16)}`,
    ),
  );
}

/** Returns the name of each thread, the kernel's function in which it waits, and its system call with its arguments. */
function threads(pid: number): readonly string[] {
  const folder = `/proc/${pid}/task`;
  return readdirSync(folder).map((thread) => {
    const facts = ['comm', 'wchan', 'syscall'].flatMap((name) =>
      read(join(folder, thread, name), (bytes) => [bytes.toString('latin1').trim()]),
    );
    return `thread ${thread}: ${facts.join(', ')}`;
  });
}

/** Returns nothing where it cannot be read. */
function read(path: string, show: (bytes: Buffer) => readonly string[]): readonly string[] {
  try {
    return show(readFileSync(path));
  } catch {
    return []; // the thread has ended meanwhile
  }
}
