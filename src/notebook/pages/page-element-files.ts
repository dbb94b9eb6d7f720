import { MAX_PAGE_BODY_BYTES } from '#src/base/caller/page-access.ts';
import { MAX_REMOVED_FILES } from '#src/workspace/files/element-files.ts';

/**
 * Returns a script for the page that sends files of `mo.ui.file` as files. marimo's page reads a file as base64 and sends that within the
 * value of the element. The script sends the file first, and gives the page its id on the server as what was read, so the value is
 * short, and the element shows a file as uploaded only once the server has it. The kernel finds the file by its id
 * (`src/confined/python/kernel/element_files.py`).
 *
 * Files that no value will name are removed from the server: of an upload that failed in part, of an element that got other files
 * meanwhile or, in a form, before the form was sent, and of a page that ends.
 *
 * The page says when another value is too large to be sent, such as a recording.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page and its `pageToken`.
 */
export function elementFileScript(settings: string): string {
  return `(() => {
  const { address, pageToken, maxElementFileBytes } = ${settings};
  const MARK = 'upload:', MARKS = /"upload:([0-9a-f]{32})"/g;
  const ask = window.fetch;
  const read = FileReader.prototype.readAsDataURL;
  /** The ids of files that no value names yet, and of those in values that were not sent yet. */
  const loose = new Set(), unsent = new Set();
  /** The ids of the files of each element. */
  const idsOf = new WeakMap();
  /** The files that were chosen last, and those that each element sends. An element drops what it sends when it gets other files. */
  let chosen = { element: null, uploads: new Set() };
  const sentBy = new WeakMap();
  let arriving = 0, hasLeftovers = false, turn = Promise.resolve();

  const tell = (title, description) => {
    const data = { title, description, variant: 'danger' };
    window.dispatchEvent(new CustomEvent('troupe-message', { detail: { op: 'alert', data } }));
  };
  const send = (path, type, body, init) => ask(address + 'api/' + path, {
    method: 'POST',
    headers: { authorization: 'Bearer ' + pageToken, 'content-type': type },
    body,
    ...init,
  });
  const discard = (ids, init) => {
    for (const id of ids) { loose.delete(id); unsent.delete(id); }
    for (let from = 0; from < ids.length; from += ${MAX_REMOVED_FILES}) {
      const some = ids.slice(from, from + ${MAX_REMOVED_FILES});
      send('element-files/discard', 'application/json', JSON.stringify({ ids: some }), init).catch(() => {});
    }
  };
  const choose = (event) => {
    const element = event.composedPath().find(({ localName }) => localName === 'marimo-file');
    if (element) chosen = { element, uploads: new Set() };
  };
  for (const kind of ['input', 'drop']) window.addEventListener(kind, choose, true);
  const isCurrent = (choice) => choice.element === null || sentBy.get(choice.element) === choice;
  const begin = (choice) => {
    if (isCurrent(choice)) return;
    for (const upload of sentBy.get(choice.element)?.uploads ?? []) upload.abort();
    sentBy.set(choice.element, choice);
  };
  const upload = async (file, { uploads }) => {
    if (file.size > maxElementFileBytes)
      throw new Error('files of an element may have ' + Math.floor(maxElementFileBytes / 1e5) / 10 + ' MB each. Upload larger ones in the Files panel; ' +
        'the notebook opens them by their names.');
    const control = new AbortController();
    uploads.add(control);
    const response = await send('element-files', 'application/octet-stream', file, { signal: control.signal }).catch(() => {
      throw new Error('the server does not answer, or the file was changed.');
    });
    uploads.delete(control); // what the server has stored is removed by its id, which the answer has
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.detail);
    return answer.id;
  };
  const settle = () => {
    if (arriving > 0 || !hasLeftovers) return;
    hasLeftovers = false;
    discard([...loose]);
  };
  const asText = (name) => Object.assign(document.createElement('p'), { textContent: name }).innerHTML;

  FileReader.prototype.readAsDataURL = function (blob) {
    // The library of marimo's elements for files notes a path in each file. No other part of the page reads such files in this way.
    if (!(blob instanceof File) || typeof blob.path !== 'string') return read.call(this, blob);
    const choice = chosen;
    begin(choice);
    arriving++;
    upload(blob, choice).then((id) => {
      loose.add(id);
      if (!isCurrent(choice)) {
        hasLeftovers = true;
        return;
      }
      Object.defineProperty(this, 'result', { value: 'data:;base64,' + MARK + id });
      this.dispatchEvent(new ProgressEvent('load'));
    }).catch((error) => {
      hasLeftovers = true;
      if (isCurrent(choice)) tell('A file was not uploaded', asText(blob.name + ': ' + error.message));
    }).finally(() => {
      arriving--;
      setTimeout(settle); // the page takes a file in the meantime, and may begin with the next one
    });
  };

  window.addEventListener('marimo-value-input', ({ detail }) => {
    const { value, element } = detail ?? {};
    if (element?.localName !== 'marimo-file' || !Array.isArray(value)) return;
    const ids = value.flatMap(([, text]) => String(text).startsWith(MARK) ? [text.slice(MARK.length)] : []);
    for (const id of ids) if (loose.delete(id)) unsent.add(id);
    const before = idsOf.get(element) ?? [];
    idsOf.set(element, ids);
    discard(before.filter((id) => unsent.has(id) && !ids.includes(id)));
  }, true);
  window.addEventListener('pagehide', () => discard([...loose, ...unsent], { keepalive: true }));

  /** Resolves with whether the value may be sent. */
  const admit = async (request) => {
    const body = await request.blob();
    if (body.size > ${MAX_PAGE_BODY_BYTES}) {
      tell('The value was not sent', 'It is too large: the values of elements may have ${MAX_PAGE_BODY_BYTES / 2 ** 20} MiB together.');
      return false;
    }
    if (unsent.size > 0) for (const [, id] of (await body.text()).matchAll(MARKS)) unsent.delete(id);
    return true;
  };
  window.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (!url.startsWith(address + 'api/kernel/set_ui_element_value')) return ask(input, init);
    const request = new Request(input, init);
    const isAdmitted = turn.then(() => admit(request.clone()));
    turn = isAdmitted.catch(() => {}); // later values stay after earlier ones
    return await isAdmitted ? ask(request) : Response.json({ success: true });
  };
})();`;
}
