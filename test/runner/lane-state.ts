/**
 * The lane in which this process runs test files, as fixtures see it. A lane is a process that imports one test file after the other,
 * so that modules, the OpenAPI check and the kernel host are loaded once for many files.
 */

/** The lane of this process. */
export interface Lane {
  /** The present file, relative to the checkout. */
  file: string;
  /** Whether servers of the present file start kernel hosts of their own. */
  ownHost: boolean;
  /** The pid of the first process of the kernel host that a server took last. */
  guardian?: number | undefined;
  /** Runs `end` once the lane has no more files. */
  atEnd(end: () => Promise<void>): void;
}

/** The functions that a lane calls when it has no more files. */
export const ends: (() => Promise<void>)[] = [];

const number = process.env.TROUPE_TEST_LANE;

/** The lane; undefined in a process that runs one test file only, such as one started by hand. */
export const LANE: Lane | undefined =
  number === undefined ? undefined : { file: '', ownHost: false, atEnd: (end) => void ends.push(end) };
