/** How much space the store takes, and how much its commits may take. */

export interface StoreExtent {
  /** The bytes up to the last page. */
  readonly usedBytes: number;
  /** The bytes of free pages within that. */
  readonly reusableBytes: number;
}

const META_PAGES = 2;
const NO_TREE = { treeBranchPageCount: 0, treeLeafPageCount: 0, overflowPages: 0 };

/** Returns the extent, from the statistics of lmdb-js. */
export function extentOf(stats: object): StoreExtent {
  const { pageSize, lastPageNumber, free } = { pageSize: PAGE_BYTES, lastPageNumber: 1, free: {}, ...stats };
  const used = [stats, free].map((tree) => {
    const { treeBranchPageCount, treeLeafPageCount, overflowPages } = { ...NO_TREE, ...tree };
    return treeBranchPageCount + treeLeafPageCount + overflowPages;
  });
  const pages = lastPageNumber + 1;
  const freePages = used.reduce((rest, count) => rest - count, pages - META_PAGES);
  return { usedBytes: pages * pageSize, reusableBytes: Math.max(0, freePages) * pageSize };
}

const PAGE_BYTES = 4096;
/**
 * A tree of billions of records is not deeper than this. Each write copies the pages on its path,
 * and may split some.
 */
const PAGES_ON_THE_WAY = 8;
/** The space for listing the pages of a removed value as free: enough for 16 MiB. */
const LIST_BYTES = 64 * 1024;

/** The most space that a commit takes in addition to its writes. */
const BYTES_FOR_A_COMMIT = 256 * 1024;
/**
 * The most space for a removal, and for a value in addition to its bytes. When a value is replaced,
 * its old pages are listed as free, too.
 */
const BYTES_FOR_A_REMOVAL = PAGES_ON_THE_WAY * PAGE_BYTES + LIST_BYTES;
const BYTES_FOR_A_VALUE = PAGES_ON_THE_WAY * PAGE_BYTES + LIST_BYTES / 8 + PAGE_BYTES;

/** Returns the space that one commit of all these writes takes at most. A write without bytes removes a record. */
export function spaceFor(
  commits: Iterable<{ readonly writes: ReadonlyMap<string, { readonly bytes: Uint8Array | undefined }> }>,
): number {
  let space = BYTES_FOR_A_COMMIT;
  for (const { writes } of commits)
    for (const { bytes } of writes.values())
      space += bytes === undefined ? BYTES_FOR_A_REMOVAL : BYTES_FOR_A_VALUE + bytes.byteLength;
  return space;
}
