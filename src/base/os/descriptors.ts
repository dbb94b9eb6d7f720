/** The open files of this process. Those above standard error belong to it alone: no program that it starts has them. */
import { closeSync, fstatSync, readdirSync, readFileSync } from 'node:fs';

const STDERR = 2;
const O_CLOEXEC = 0o2000000;
const [F_SETFD, FD_CLOEXEC] = [2, 1];

/**
 * Closes the descriptors that the launcher left open. Node.js marks as close-on-exec the
 * descriptors that it opens, and those that it finds among the first ones; all others are
 * inherited. Call it before a native library opens anything.
 */
export function closeInherited(): void {
  for (const descriptor of inheritable()) closeSync(descriptor);
}

/**
 * Marks every descriptor close-on-exec, because native libraries open some without the mark. Call
 * it in the turn in which such a library did that, because a program started in between would
 * inherit them. If the native call is missing, this resolves without effect: the kernel host closes
 * inherited descriptors.
 */
export async function loadCloseOnExec(): Promise<() => void> {
  if (process.platform !== 'linux') return () => {};
  try {
    const { default: koffi } = await import('koffi');
    const fcntl = koffi.load(null).func('int fcntl(int, int, int)');
    return () => {
      for (const descriptor of inheritable()) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    };
  } catch {
    return () => {};
  }
}

/**
 * Returns the descriptors above standard error that a program started now would inherit; none
 * without /proc.
 */
export function inheritable(): number[] {
  return openDescriptors().filter((descriptor) => descriptor > STDERR && isInheritable(descriptor));
}

function isInheritable(descriptor: number): boolean {
  try {
    const [, flags] =
      /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, 'latin1')) ?? [];
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    return false; // the descriptor that has read the list
  }
}

/**
 * Returns the descriptor with which this process has a file open; undefined when it has not opened
 * the file, and without /proc.
 */
export function descriptorOf(device: number, inode: number): number | undefined {
  return openDescriptors().find((descriptor) => {
    try {
      const { dev, ino } = fstatSync(descriptor);
      return dev === device && ino === inode;
    } catch {
      return false; // the descriptor that has read the list
    }
  });
}

/**
 * Returns the open descriptors of this process, including the descriptor that reads the list; none
 * without /proc.
 */
export function openDescriptors(): number[] {
  try {
    return readdirSync('/proc/self/fd').map(Number);
  } catch {
    return [];
  }
}
