/**
 * Returns a script for the page that opens the copy of a notebook. marimo's page opens the file that it has asked for as the copy, at the
 * address of its own notebook. In Troupe, the copy is another notebook, whose address follows from its id.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page.
 */
export function copyScript(settings: string): string {
  return `(() => {
  const { address } = ${settings};
  const ask = window.fetch, open = window.open;
  let copy;
  window.fetch = async (input, init) => {
    const response = await ask(input, init);
    const url = input instanceof Request ? input.url : String(input);
    if (response.ok && url.startsWith(address + 'api/kernel/copy')) copy = (await response.clone().json()).notebookId;
    return response;
  };
  window.open = (url, ...rest) => {
    if (copy === undefined || !new URL(url, document.baseURI).searchParams.has('file')) return open.call(window, url, ...rest);
    const id = copy;
    copy = undefined;
    return open.call(window, new URL('../' + id + '/', address), ...rest);
  };
})();`;
}
