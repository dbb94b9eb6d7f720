/** The meaning of the operating system's errors in plain words, with advice. */
import { getSystemErrorName } from 'node:util';

interface Meaning {
  /** The text that completes "<path> cannot be …: ". */
  readonly what: string;
  readonly advice: string;
}

const OWNERSHIP =
  'Run the server as the owner of this path, or give the path to the user of the server (chown).';
const FAILING_DISK =
  'Look into the system log (dmesg), replace the disk if it fails, and restore the latest backup.';

const MEANINGS: Readonly<Record<string, Meaning>> = {
  ENOSPC: { what: 'the disk is full', advice: 'Free some disk space.' },
  EDQUOT: { what: 'the disk quota is used up', advice: 'Free some disk space, or raise the quota.' },
  EFBIG: { what: 'the file would be too large', advice: 'Raise the limit of file sizes (ulimit -f).' },
  EROFS: {
    what: 'the file system is read-only',
    advice:
      'Mount it writable. A disk that fails can become read-only by itself: look into dmesg. A unit of systemd can write only the folders that it names (ReadWritePaths=).',
  },
  EIO: { what: 'the disk reports an input/output error', advice: FAILING_DISK },
  EUCLEAN: {
    what: 'the file system is damaged',
    advice: 'Check it with fsck, and restore the latest backup.',
  },
  EACCES: { what: 'permission is denied', advice: OWNERSHIP },
  EPERM: { what: 'the operation is not permitted', advice: OWNERSHIP },
  ENOENT: { what: 'it does not exist', advice: 'Check the path, and whether its volume is mounted.' },
  ENOTDIR: { what: 'a part of the path is not a directory', advice: 'Check the path.' },
  EISDIR: { what: 'it is a directory', advice: 'Check the path.' },
  EEXIST: { what: 'there is another file in its place', advice: 'Check the path.' },
  ELOOP: { what: 'its symbolic links go in a circle', advice: 'Check the path.' },
  ENAMETOOLONG: { what: 'the path is too long', advice: 'Choose a shorter path.' },
  EMFILE: { what: 'the server has too many open files', advice: 'Raise the limit (LimitNOFILE, ulimit -n).' },
  ENFILE: { what: 'the system has too many open files', advice: 'Raise fs.file-max.' },
  ENOMEM: { what: 'there is not enough memory', advice: 'Free some memory, or raise the limit (ulimit -v).' },
  ENODEV: { what: 'the device is gone', advice: FAILING_DISK },
  ENXIO: { what: 'the device is gone', advice: FAILING_DISK },
  ESTALE: { what: 'the network file system has lost it', advice: 'Mount the file system again.' },
  ETIMEDOUT: { what: 'the file system does not answer', advice: 'Look into dmesg and at the network.' },
};

/**
 * Returns the name of an error's code, such as `ENOSPC`; undefined for an error without a code. LMDB gives
 * numbers instead of names.
 */
export function errorNameOf(error: unknown): string | undefined {
  const { code } = { code: undefined, ...Object(error) };
  if (typeof code === 'string') return code;
  if (typeof code !== 'number' || code <= 0) return undefined;
  try {
    return getSystemErrorName(-code);
  } catch {
    return undefined;
  }
}

/** Returns the meaning of the error, such as `the disk is full`, with its name. */
export function meaningOf(error: unknown): string {
  const name = errorNameOf(error);
  const meaning = name === undefined ? undefined : MEANINGS[name];
  if (meaning !== undefined) return `${meaning.what} (${name})`;
  return error instanceof Error ? error.message : String(error);
}

/** Returns advice about the error, as a sentence. */
export function adviceFor(error: unknown): string {
  return MEANINGS[errorNameOf(error) ?? '']?.advice ?? 'Run troupe doctor, and look into the system log.';
}
