import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

/**
 * Returns whether the writable memory of a process contains a text; undefined for an ordinary user, who may not read it, because
 * kernels and servers are undumpable.
 */
export function memoryHas(pid: number, text: string): boolean | undefined {
  let memory: number;
  try {
    memory = openSync(`/proc/${pid}/mem`, 'r');
  } catch (error) {
    if (process.getuid?.() !== 0 && Object(error).code === 'EACCES') return undefined;
    throw error;
  }
  try {
    return readFileSync(`/proc/${pid}/maps`, 'utf8')
      .split('\n')
      .filter((line) => / rw/.test(line) && !line.includes('[v'))
      .some((line) => {
        const [low = 0, high = 0] = line
          .split(' ', 1)[0]!
          .split('-')
          .map((end) => Number.parseInt(end, 16));
        return read(memory, low, high - low)?.includes(text) === true;
      });
  } finally {
    closeSync(memory);
  }
}

/** Returns undefined when the process has given this memory back meanwhile, such as the stack of a thread that has ended. */
function read(memory: number, from: number, length: number): Buffer | undefined {
  const bytes = Buffer.alloc(length);
  try {
    readSync(memory, bytes, 0, length, from);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EIO') return undefined;
    throw error;
  }
  return bytes;
}
