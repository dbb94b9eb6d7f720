/**
 * Returns a script for the page that completes references to the files in the folder `public` beside the notebook, such as
 * `<img src="public/logo.png">`. The browser sends no cookie for a picture of a page without an origin, so the address of each file has
 * a credential in it, which reads these files and nothing else. The script also completes addresses that charts fetch.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page and its `publicCode`.
 */
export function publicFileScript(settings: string): string {
  return `(() => {
  const { address, publicCode } = ${settings};
  const REFERENCE = /^(?:\\.?\\/)?public\\/(?=.)/;
  const ATTRIBUTES = ['src', 'poster', 'href', 'data'];
  const SELECTOR = ATTRIBUTES.flatMap((name) => ['', './', '/'].map((start) => '[' + name + '^="' + start + 'public/"]')).join();
  const WATCHED = { subtree: true, childList: true, attributes: true, attributeFilter: ATTRIBUTES };
  const base = address + 'public/' + publicCode + '/';
  const ask = window.fetch, attach = Element.prototype.attachShadow;
  const complete = (reference) => REFERENCE.test(reference) ? reference.replace(REFERENCE, base) : undefined;

  const completeIn = (element) => {
    for (const name of ATTRIBUTES) {
      const whole = complete(element.getAttribute(name) ?? '');
      if (whole !== undefined) element.setAttribute(name, whole);
    }
  };
  const observer = new MutationObserver((records) => {
    for (const { type, target, addedNodes } of records) {
      if (type === 'attributes') completeIn(target);
      for (const node of addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue;
        completeIn(node);
        for (const element of node.querySelectorAll(SELECTOR)) completeIn(element);
      }
    }
  });
  observer.observe(document, WATCHED);
  Element.prototype.attachShadow = function (init) {
    const root = attach.call(this, init);
    observer.observe(root, WATCHED);
    return root;
  };

  window.fetch = (input, init) => {
    if (input instanceof Request) return ask(input, init);
    const place = new URL('public/', document.baseURI).href, url = String(input);
    return ask(url.startsWith(place) ? base + url.slice(place.length) : (complete(url) ?? input), init);
  };
})();`;
}
