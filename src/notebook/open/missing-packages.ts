/** How many packages a page may install in one request, and how long their names may be. */
const MAX_OFFERED_PACKAGES = 50;
const MAX_PACKAGE_CHARS = 300;

/** Returns the packages, of those that a kernel has named, that a page can install in one request. */
export function offeredPackages(named: readonly string[]): readonly string[] {
  return named.filter(({ length }) => length <= MAX_PACKAGE_CHARS).slice(0, MAX_OFFERED_PACKAGES);
}
