/**
 * Counts the system calls of a process with strace, which slows the process down. So the counts are right and
 * the times are not.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '../temporary-folder.ts';

/** The system calls of a process. */
export interface SystemCalls {
  readonly byName: ReadonlyMap<string, number>;
  readonly total: number;
  /** Bytes that were written to sockets, and to files. */
  readonly socketBytes: number;
  readonly fileBytes: number;
  /** Flushes of files to disk. */
  readonly flushes: number;
}

const ATTACH_LIMIT_MS = 10_000;
const LINE = /^(\d+)\s+(?:<\.\.\. )?(\w+)(?:\((\d+)<([^>]*)>)?/;
const RESULT = /= (\d+)(?:<.*>)?$/;
const WRITES = new Set(['write', 'writev', 'send', 'sendto', 'sendmsg', 'pwrite64', 'pwritev', 'pwritev2']);
const FLUSHES = new Set(['fsync', 'fdatasync', 'msync', 'sync_file_range']);

/**
 * Returns the system calls of the process and its threads during `work`; undefined where strace is missing or not
 * allowed.
 */
export async function systemCallsDuring(
  pid: number,
  work: () => Promise<void>,
): Promise<SystemCalls | undefined> {
  const folder = temporaryFolder('strace');
  const file = join(folder.path, 'calls');
  try {
    const strace = await attach(pid, file);
    if (strace === undefined) return undefined;
    try {
      await work();
    } finally {
      strace.kill('SIGINT');
      await once(strace, 'close');
    }
    return summarize(readFileSync(file, 'latin1'));
  } finally {
    folder.remove();
  }
}

/** Resolves when the process is traced. */
async function attach(pid: number, file: string): Promise<ChildProcess | undefined> {
  const args = ['-f', '-y', '-s', '0', '-e', 'signal=none', '-o', file, '-p', String(pid)];
  const strace = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const stop = () => void strace.kill('SIGINT');
  process.once('exit', stop);
  strace.once('close', () => process.off('exit', stop));
  return new Promise((resolve) => {
    const timer = setTimeout(stop, ATTACH_LIMIT_MS);
    const done = (traced: boolean) => {
      clearTimeout(timer);
      resolve(traced ? strace : undefined);
    };
    strace.stderr.on('data', (chunk: Buffer) => {
      if (chunk.includes('attached')) done(true);
    });
    strace.once('error', () => done(false));
    strace.once('close', () => done(false));
  });
}

/**
 * A call that another thread interrupts takes two lines: its descriptor is on the first line, its
 * result on the second.
 */
function summarize(text: string): SystemCalls {
  const byName = new Map<string, number>();
  const targets = new Map<string, string>();
  const bytes = { socket: 0, file: 0 };
  let flushes = 0;
  for (const line of text.split('\n')) {
    const [, thread = '', name = '', , target] = LINE.exec(line) ?? [];
    if (name === '') continue;
    if (!line.includes('<... ')) byName.set(name, (byName.get(name) ?? 0) + 1);
    if (FLUSHES.has(name) && !line.includes('<... ')) flushes++;
    if (target !== undefined) targets.set(thread, target);
    const written = RESULT.exec(line)?.[1];
    if (!WRITES.has(name) || written === undefined) continue;
    const to = target ?? targets.get(thread) ?? '';
    if (/^(socket|TCP|UNIX)/.test(to)) bytes.socket += Number(written);
    else if (to.startsWith('/')) bytes.file += Number(written);
  }
  const total = [...byName.values()].reduce((sum, count) => sum + count, 0);
  return { byName, total, socketBytes: bytes.socket, fileBytes: bytes.file, flushes };
}
