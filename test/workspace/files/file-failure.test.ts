import assert from 'node:assert/strict';
import test from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import { fileFailure } from '#src/workspace/files/file-failure.ts';

/**
 * Errors of the system that a test cannot cause as every user, and the error that the caller gets
 * for each.
 */
const MEANINGS: Readonly<Record<string, readonly [status: number, code: string]>> = {
  EACCES: [409, 'file_inaccessible'],
  EPERM: [409, 'file_inaccessible'],
  EROFS: [409, 'file_inaccessible'],
  EBUSY: [409, 'file_inaccessible'],
  ENOSPC: [507, 'storage_full'],
  EDQUOT: [507, 'storage_full'],
  EFBIG: [413, 'body_too_large'],
  EMFILE: [503, 'unavailable'],
};

test('an error of the operating system becomes a code that shows whether a retry helps', () => {
  for (const [code, meaning] of Object.entries(MEANINGS)) {
    const failure = fileFailure(Object.assign(new Error('/secret/path'), { code }));
    assert.ok(failure instanceof AppError, code);
    assert.deepEqual([failure.status, failure.code], meaning, code);
    assert.doesNotMatch(failure.message, /secret/);
  }
  const broken = Object.assign(new Error(), { code: 'EIO' });
  assert.equal(fileFailure(broken), broken);
});
