/** Paths of databases that are files of a workspace: inside its folder, through links too. */
import { readdirSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, sep } from 'node:path';
import { Type } from 'typebox';
import type { Violation } from '#src/core/errors.ts';
import { codeOf, DatasourceFailure } from '../failure.ts';

export function pathMember(description: string, example: string) {
  return Type.String({ title: 'Path', description, minLength: 1, maxLength: 1024, examples: [example] });
}

/** What can be said of a path without looking at files. */
export function checkPath(path: string): readonly Violation[] {
  const parts = path.split('/');
  const isInside =
    !path.startsWith('/') && !parts.includes('..') && !/[\\\p{Cc}]/u.test(path) && !/^[a-z]+:/i.test(path);
  return isInside
    ? []
    : [{ path: '/path', message: 'must be a relative path inside the files of the workspace' }];
}

/** The real path of a file or folder. Throws `file_missing`, also when it is there but leads out of the folder. */
export function locate(filesDirectory: string, path: string, kind: 'file' | 'any'): string {
  try {
    const root = realpathSync(filesDirectory);
    const found = realpathSync(join(root, path));
    const stats = statSync(found);
    const fits = stats.isFile() || (kind === 'any' && stats.isDirectory());
    if (isWithin(root, found) && fits) return found;
  } catch (error) {
    if (codeOf(error) === 'EACCES') throw new DatasourceFailure('file_unusable');
    if (codeOf(error) === undefined) throw error;
  }
  throw new DatasourceFailure('file_missing');
}

export function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return !isAbsolute(way) && way !== '..' && !way.startsWith(`..${sep}`);
}

/**
 * Throws `file_missing` when this process has a file open that lies outside: a link can be put in the way between looking
 * at a path and opening it, and what is open cannot lie. Only Linux can tell; elsewhere it finds nothing.
 */
export function refuseOpenOutside(root: string, known: ReadonlySet<string>): void {
  for (const [, path] of openFiles()) {
    if (!known.has(path) && !isWithin(root, path)) throw new DatasourceFailure('file_missing');
  }
}

/** The files that this process has open: descriptor and path. */
export function openFiles(): [descriptor: string, path: string][] {
  try {
    return readdirSync(DESCRIPTORS).flatMap((descriptor) => {
      const path = targetOf(descriptor);
      return path?.startsWith('/') && !path.startsWith('/dev/') && !path.startsWith('/proc/')
        ? [[descriptor, path]]
        : [];
    });
  } catch {
    return []; // no /proc here
  }
}

export const DESCRIPTORS = '/proc/self/fd';

function targetOf(descriptor: string): string | undefined {
  try {
    return readlinkSync(join(DESCRIPTORS, descriptor)).replace(/ \(deleted\)$/, '');
  } catch {
    return undefined; // closed since
  }
}
