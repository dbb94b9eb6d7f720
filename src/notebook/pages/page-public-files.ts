import { PUBLIC_CODE_LIFE_MS } from '#src/base/caller/page-access.ts';

/**
 * Returns a script for the page that makes references to the files in the folder `public` beside the notebook work.
 *
 * - `<img src="public/logo.png">`, and other files that an output shows: the browser sends no cookie for a part of a page without an
 *   origin, so the script completes the address with a credential, which reads these files and nothing else for some minutes. The script
 *   renews it when a reference appears, or when a file fails because its credential has expired, such as the rest of a film.
 * - `<a href="public/report.pdf">`: the script completes the address without a credential, because people copy it. The browser sends the
 *   cookie of the page with it when it is opened in a tab of its own, so a link that would take the place of the notebook is opened there.
 *   A download is fetched.
 * - Addresses in `srcset`, and those that charts fetch, are completed, too.
 * - `url(public/paper.png)` in a `style` attribute or a `<style>` of an output: the script puts the address of a copy in the memory of the
 *   page there. A browser may load the file of a style at any time, such as under the pointer, and reports to no script that this failed,
 *   so an address whose credential expires would not do.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page, its `pageToken` and the first `publicCode`.
 */
export function publicFileScript(settings: string): string {
  return `(() => {
  const { address, pageToken, publicCode } = ${settings};
  const LIFE_MS = ${PUBLIC_CODE_LIFE_MS};
  const MAX_COPIES = 100, MAX_COPIED_BYTES = 32 * 1024 * 1024;
  const REFERENCE = /^(?:\\.?\\/)?public\\/(?=.)/;
  /** References in a list of pictures, each of which begins the list or follows a comma. */
  const IN_LIST = /(^\\s*|,\\s+|\\d[wx],)(?:\\.?\\/)?public\\/(?=.)/g;
  /** References in styles. */
  const IN_STYLE = /\\burl\\(\\s*(["']?)((?:\\.?\\/)?public\\/[^"'()<>]+?)\\1\\s*\\)/gi;
  const ATTRIBUTES = ['src', 'poster', 'href', 'data', 'srcset', 'imagesrcset', 'style'];
  const SELECTOR = 'style,' + ATTRIBUTES.map((name) => '[' + name + '*="public/"]').join();
  const WATCHED = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ATTRIBUTES };
  const folder = address + 'public/', linked = address + 'page/public/';
  const ask = window.fetch, attach = Element.prototype.attachShadow;
  let code = publicCode, renewedMs = Date.now(), renewing;

  const renew = () => renewing ??= ask(address + 'api/public-code', { headers: { authorization: 'Bearer ' + pageToken } })
    .then((response) => response.ok ? response.json() : {})
    .then((answer) => { if (answer.code) { code = answer.code; renewedMs = Date.now(); } })
    .catch(() => {}) // the file fails, and is tried again after its error
    .finally(() => { renewing = undefined; });
  const isFresh = () => Date.now() - renewedMs < LIFE_MS / 2;
  /** Calls \`use\` with the address of a file, at once while the credential is fresh. */
  const withAddress = (rest, use) => {
    if (isFresh()) return use(folder + code + '/' + rest);
    return renew().then(() => use(folder + code + '/' + rest));
  };
  const restOf = (reference) => REFERENCE.test(reference) ? reference.replace(REFERENCE, '') : undefined;
  const linkOf = (target) => {
    const link = target.closest?.('a[href], area[href]');
    return link && String(link.href).startsWith(linked) ? link : undefined;
  };

  /** The copies of files in styles, oldest first. A later copy takes the room of earlier ones, which a browser has loaded by then. */
  const copies = [];
  let copiedBytes = 0;
  const keep = (blob) => {
    const copy = URL.createObjectURL(blob);
    copies.push({ copy, bytes: blob.size });
    copiedBytes += blob.size;
    while (copies.length > 1 && (copiedBytes > MAX_COPIED_BYTES || copies.length > MAX_COPIES)) {
      const oldest = copies.shift();
      copiedBytes -= oldest.bytes;
      URL.revokeObjectURL(oldest.copy);
    }
    return copy;
  };
  /** The copies of references that came just now: one output may have many to the same file. A later output gets the file as it is then. */
  const recent = new Map();
  const copyOf = (whole) => {
    if (recent.has(whole)) return recent.get(whole);
    const copy = ask(whole)
      .then((response) => response.ok ? response.blob() : Promise.reject(new Error(response.status)))
      .then(keep)
      .catch(() => undefined); // there is no such file, or not yet
    recent.set(whole, copy);
    setTimeout(() => recent.delete(whole), 2000);
    return copy;
  };
  /** Calls \`use\` with styles that refer to copies of public files. */
  const completeStyles = async (given, use) => {
    const found = new Map();
    for (const [, , reference] of given.matchAll(IN_STYLE)) {
      const [rest, fragment] = restOf(reference).split(/(?=#)/);
      const copy = await withAddress(rest, copyOf);
      if (copy !== undefined) found.set(reference, 'url("' + copy + (fragment ?? '') + '")');
    }
    if (found.size > 0) use(given.replace(IN_STYLE, (whole, _, reference) => found.get(reference) ?? whole));
  };
  const completeSheet = (element) => {
    const given = element.textContent;
    if (given.includes('public/')) completeStyles(given, (whole) => { if (element.textContent === given) element.textContent = whole; });
  };

  const completeAttribute = (element, name) => {
    const given = element.getAttribute(name);
    if (given === null || !given.includes('public/')) return;
    const complete = (whole) => { if (element.getAttribute(name) === given) element.setAttribute(name, whole); };
    if (name === 'style') { completeStyles(given, complete); return; }
    if (name.endsWith('srcset')) {
      if (given.search(IN_LIST) >= 0) withAddress('', (base) => complete(given.replace(IN_LIST, (_, before) => before + base)));
      return;
    }
    const rest = restOf(given);
    if (rest === undefined) return;
    if (element.localName === 'a' || element.localName === 'area') complete(linked + rest);
    else withAddress(rest, complete);
  };
  const completeIn = (element) => {
    for (const name of ATTRIBUTES) completeAttribute(element, name);
    if (element.localName === 'style') completeSheet(element);
  };
  /** Loads a file again whose credential has expired. A film goes on where it was, also one whose addresses are in \`<source>\`. */
  const loadAgain = async ({ target }) => {
    const media = target.closest?.('video, audio') ?? null;
    const elements = media === null ? [target] : [...new Set([target, media, ...media.querySelectorAll('source')])];
    const places = elements.flatMap((element) => ['src', 'srcset', 'data']
      .filter((name) => element.getAttribute?.(name)?.includes(folder))
      .map((name) => ({ element, name, before: element.getAttribute(name) })));
    if (places.length === 0) return;
    const [{ before }] = places;
    const at = before.indexOf(folder) + folder.length, used = before.slice(at, before.indexOf('/', at));
    if (used === code && Date.now() - renewedMs < LIFE_MS) return; // it fails for another reason
    if (used === code) await renew();
    if (used === code) return;
    const { currentTime = 0, paused = true } = media ?? {};
    for (const { element, name, before: text } of places)
      if (element.getAttribute(name) === text) element.setAttribute(name, text.replaceAll(folder + used + '/', folder + code + '/'));
    if (media === null || places.every(({ element }) => element.localName === 'track')) return;
    media.load();
    media.currentTime = currentTime;
    if (!paused) media.play().catch(() => {});
  };
  const save = async (link) => {
    const response = await withAddress(link.href.slice(linked.length), (whole) => ask(whole));
    if (!response.ok) throw new Error((await response.json()).detail);
    const saved = document.createElement('a');
    saved.href = URL.createObjectURL(await response.blob());
    saved.download = link.download || decodeURIComponent(new URL(link.href).pathname.split('/').pop());
    saved.click();
    setTimeout(() => URL.revokeObjectURL(saved.href), 60000);
  };
  window.addEventListener('click', (event) => {
    const link = linkOf(event.composedPath()[0]);
    if (link === undefined || event.button !== 0) return;
    if (link.hasAttribute('download')) {
      event.preventDefault();
      save(link).catch((error) => alert('The file was not downloaded: ' + error.message));
    } else if (!/^_blank$/i.test(link.target) && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      window.open(link.href, '_blank', 'noopener');
    }
  });

  const observer = new MutationObserver((records) => {
    for (const { type, target, addedNodes, attributeName } of records) {
      if (type === 'attributes') completeAttribute(target, attributeName);
      const sheet = type === 'characterData' ? target.parentNode : target;
      if (type !== 'attributes' && sheet?.localName === 'style') completeSheet(sheet);
      for (const node of addedNodes) {
        if (node.nodeType !== Node.ELEMENT_NODE) continue;
        completeIn(node);
        for (const element of node.querySelectorAll(SELECTOR)) completeIn(element);
      }
    }
  });
  const watch = (root) => {
    observer.observe(root, WATCHED);
    root.addEventListener('error', loadAgain, true); // it leaves no shadow root
  };
  watch(document);
  Element.prototype.attachShadow = function (init) {
    const root = attach.call(this, init);
    watch(root);
    return root;
  };

  window.fetch = (input, init) => {
    if (input instanceof Request) return ask(input, init);
    const place = new URL('public/', document.baseURI).href, url = String(input);
    const rest = url.startsWith(place) ? url.slice(place.length) : restOf(url);
    return rest === undefined ? ask(input, init) : Promise.resolve(withAddress(rest, (whole) => ask(whole, init)));
  };
})();`;
}
