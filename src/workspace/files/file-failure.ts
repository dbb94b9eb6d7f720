import { AppError, notFound } from '#src/base/errors/errors.ts';

/**
 * Returns the error for the caller when the system has refused an operation. Every other error is
 * returned unchanged: a bug, or a broken disk.
 */
export function fileFailure(error: unknown): unknown {
  const { code } = { code: undefined, ...Object(error) };
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ELOOP':
    case 'ENAMETOOLONG':
      return notFound();
    case 'EISDIR':
    case 'EEXIST':
    case 'ENOTEMPTY':
    case 'EXDEV':
      return notAFile();
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'EBUSY':
    case 'ETXTBSY':
      return new AppError(
        'file_inaccessible',
        'The permissions of the file or its folder do not allow this.',
      );
    case 'ENOSPC':
    case 'EDQUOT':
      return new AppError('storage_full', 'The disk of the server is full, so the file cannot be stored.');
    case 'EFBIG':
      return new AppError('body_too_large', 'The file would be larger than the system of the server allows.');
    case 'EMFILE':
    case 'ENFILE':
      return new AppError('unavailable', 'The server has too many open files.', {
        headers: { 'retry-after': '2' },
      });
    default:
      return error;
  }
}

/**
 * Returns the error for a path whose entry is not of the requested kind: it is a folder, a link or
 * a pipe.
 */
export function notAFile(
  detail = 'The path does not lead to a file. To list a folder, use its path as the prefix; links, pipes and devices are not served.',
): AppError {
  return new AppError('not_a_file', detail);
}
