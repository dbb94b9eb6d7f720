/** How many earlier versions of itself a notebook keeps. */

export const MAX_VERSIONS = 100;
/** The most bytes of all earlier versions together. The newest earlier version stays in any case. */
export const MAX_VERSIONS_BYTES = 32 * 1024 * 1024;
/** How long changes of one author are joined into one version. */
export const VERSION_MS = 5 * 60_000;
