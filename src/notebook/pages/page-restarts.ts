/**
 * Returns a script for the page that loads it again after a restart of the kernel. marimo's page would do that itself, but a page without
 * an origin is a stranger to its own address: the browser sends no cookie with the request, and the frame would stay empty. So the page
 * around it is asked to load the frame again. A page that is not in a frame loads itself. The server ends the stream of the page before it
 * answers, and page-connection.ts must not take that for a server that is away, so it learns of the restart.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page.
 */
export function restartScript(settings: string): string {
  return `(() => {
  const { address } = ${settings};
  const ask = window.fetch;
  window.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (!url.startsWith(address + 'api/kernel/restart_session')) return ask(input, init);
    const tell = (detail) => window.dispatchEvent(new CustomEvent('troupe-restart', { detail }));
    tell(true);
    const response = await ask(input, init).catch((error) => { tell(false); throw error; });
    if (!response.ok) tell(false);
    if (!response.ok || window.parent === window) return response;
    window.parent.postMessage({ type: 'troupe-reload' }, new URL(address).origin);
    return new Promise(() => {}); // the page ends here, and must not load itself meanwhile
  };
})();`;
}
