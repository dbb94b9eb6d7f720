/** The rights of a notebook's page in a browser: to change the notebook, to use its UI elements, or only to look. */
export type PageAccess = 'edit' | 'interact' | 'view';

/**
 * The credentials of a page.
 *
 * - `code`: part of the page's one-time address, valid once and for a minute.
 * - `cookie`: kept by the browser, which sends it for the page itself only.
 * - `page`: sent by the page with each of its requests.
 * - `public`: the first part of the addresses of the notebook's public files, for pictures, with which the browser sends no header of the
 *   page. People copy addresses of pictures, so it is short-lived, and the page renews it.
 */
export type PageCredential = 'code' | 'cookie' | 'page' | 'public';

/** How long the credential in an address of a public file is valid. */
export const PUBLIC_CODE_LIFE_MS = 5 * 60_000;

/** A page's credential as the request has it, and the notebook that the request names. */
export interface SentPageCredential {
  readonly kind: PageCredential;
  /** Empty when the request has no credential. */
  readonly text: string;
  readonly notebookId: string;
}

const RANK: Readonly<Record<PageAccess, number>> = { view: 0, interact: 1, edit: 2 };

/** Returns whether `access` allows everything that `needed` does. */
export function allows(access: PageAccess, needed: PageAccess): boolean {
  return RANK[access] >= RANK[needed];
}

/** The largest body of a request of a page, except for uploads of files. */
export const MAX_PAGE_BODY_BYTES = 16 * 1024 * 1024;
