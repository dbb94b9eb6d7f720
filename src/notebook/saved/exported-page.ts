/**
 * Returns an exported page with a script that makes marimo's front end work from another origin, such as in a file on a disk:
 *
 * - marimo's elements are shadow roots, which get the style sheets of the page's own origin, of marimo's CDN, and those with a certain
 *   title. So the script gives this title to all style sheets of the front end. Without it a slider has no size.
 * - If the front end cannot be loaded, the page would stay empty, so it names the address of the front end.
 *
 * `assetUrl` is the address of the front end.
 */
export function withFrontEndScript(html: string, assetUrl: string): string {
  const settings = JSON.stringify({ folder: `${assetUrl}/` }).replaceAll('<', '\\u003c');
  return html.replace('<head>', () => `<head><script>${script(settings)}</script>`);
}

function script(settings: string): string {
  return `(() => {
  const { folder } = ${settings};
  const isOurs = (address) => String(address).startsWith(folder);
  new MutationObserver((records) => {
    for (const { addedNodes } of records)
      for (const node of addedNodes)
        if (node.localName === 'link' && node.relList.contains('stylesheet') && isOurs(node.href)) node.title = 'marimo';
  }).observe(document, { subtree: true, childList: true });
  addEventListener('error', ({ target }) => {
    if (target.localName !== 'script' || !isOurs(target.src)) return;
    const note = document.createElement('p');
    note.style.cssText = 'max-width:40rem;margin:3rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif';
    note.textContent = 'This page needs programs of the server ' + new URL(folder).origin + ', but could not load them. ' + 'Open the page where that server can be reached.';
    document.body.append(note);
  }, true);
})();`;
}
