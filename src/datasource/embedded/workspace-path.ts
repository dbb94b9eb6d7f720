/** Paths of databases that are files of a workspace, as far as they can be judged without looking at files. */
import { Type } from 'typebox';
import type { Violation } from '#src/core/errors.ts';

export function pathMember(description: string, example: string) {
  return Type.String({ title: 'Path', description, minLength: 1, maxLength: 1024, examples: [example] });
}

/** Returns the errors of a path. Links are checked by the engine, when it opens the file. */
export function checkPath(path: string): readonly Violation[] {
  const parts = path.split('/');
  const isInside =
    !path.startsWith('/') && !parts.includes('..') && !/[\\\p{Cc}]/u.test(path) && !/^[a-z]+:/i.test(path);
  return isInside
    ? []
    : [{ path: '/path', message: 'must be a relative path inside the files of the workspace' }];
}
