import { MAX_PAGE_BODY_BYTES } from '#src/core/page-access.ts';

/**
 * Returns a script for the page that sends no value that is too large, and says so. The element for files shows a file as uploaded once
 * the page has read it, and the server would refuse the request that has the file in it.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page.
 */
export function largeValueScript(settings: string): string {
  return `(() => {
  const { address } = ${settings};
  const ask = window.fetch;
  const data = {
    title: 'The value was not sent',
    description: 'It is too large: files of an element may have 11 MB together. Upload larger files in the Files panel; ' +
      'the notebook opens them by their names.',
    variant: 'danger',
  };
  window.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (!url.startsWith(address + 'api/kernel/set_ui_element_value')) return ask(input, init);
    const request = new Request(input, init);
    const { size } = await request.clone().blob();
    if (size <= ${MAX_PAGE_BODY_BYTES}) return ask(request);
    window.dispatchEvent(new CustomEvent('troupe-message', { detail: { op: 'alert', data } }));
    return Response.json({ success: true });
  };
})();`;
}
