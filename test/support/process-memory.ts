import { closeSync, openSync, readFileSync, readSync } from 'node:fs';

/** Returns whether the writable memory of a process contains a text. The caller must be allowed to read that memory. */
export function memoryHas(pid: number, text: string): boolean {
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  try {
    return readFileSync(`/proc/${pid}/maps`, 'utf8')
      .split('\n')
      .filter((line) => / rw/.test(line) && !line.includes('[v'))
      .some((line) => {
        const [low = 0, high = 0] = line
          .split(' ', 1)[0]!
          .split('-')
          .map((end) => Number.parseInt(end, 16));
        const bytes = Buffer.alloc(high - low);
        readSync(memory, bytes, 0, bytes.length, low);
        return bytes.includes(text);
      });
  } finally {
    closeSync(memory);
  }
}
