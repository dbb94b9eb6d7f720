/**
 * Places for tabs with a framed notebook. Over HTTP/1.1 a browser has at most six connections to one server for all frames below
 * pages of one origin, and each notebook keeps one connection. A tab that finds no free place shows marimo's page without a
 * frame, because the browser counts connections of such a page separately.
 */

/** Three places leave connections for the visible tab: one for its presence, one for a conversation, and one for requests. */
const MAX_FRAMES = 3;

/** Resolves with whether this tab may show a notebook in a frame. The tab keeps its place until it is closed. */
export async function takeTabPlace(): Promise<boolean> {
  if (sharesConnections()) return true;
  // Without TLS, browsers offer locks only to pages from the same machine.
  if (navigator.locks === undefined) return false;
  for (let place = 1; place <= MAX_FRAMES; place++)
    if (await isTaken(`troupe.notebook.${place}`)) return true;
  return false;
}

/** Whether all requests of the browser to the server share one connection, as in HTTP/2 and HTTP/3. */
function sharesConnections(): boolean {
  const [page] = performance.getEntriesByType('navigation');
  return page instanceof PerformanceNavigationTiming && /^h[23]/.test(page.nextHopProtocol);
}

/** Resolves with whether this tab has got the lock, which the tab then keeps. */
function isTaken(name: string): Promise<boolean> {
  return new Promise((resolve) => {
    void navigator.locks.request(name, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise(() => {});
    });
  });
}
