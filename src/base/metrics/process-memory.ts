import { readFileSync } from 'node:fs';

export interface ProcessMemory {
  /** Memory that is this process's own: anonymous and shared pages. */
  readonly ownBytes: number;
  /** Pages of files that are mapped, most of them of the store. The system takes them back when it needs memory. */
  readonly mappedBytes: number;
}

/** The last measurement of this process. */
let latest: ProcessMemory = { ownBytes: 0, mappedBytes: 0 };

/** While the process has no descriptor left to read it with, the last value is returned. */
export function ownMemory(): ProcessMemory {
  try {
    const status = readFileSync('/proc/self/status', 'latin1');
    const bytesOf = (name: string) =>
      Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) * 1024;
    latest = { ownBytes: bytesOf('RssAnon') + bytesOf('RssShmem'), mappedBytes: bytesOf('RssFile') };
  } catch {
    // There is no /proc, or no free descriptor.
  }
  return latest;
}
