/**
 * Returns a script for the page that carries out the downloads of its files panel. For a download, marimo's page follows a link, which
 * can have no header. The browser sends no cookie with it, because the page has no origin, and a token in its address would end up in
 * logs. So the script asks for the file in place of the link, with the token of the page in a header, and saves the answer.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page and its `pageToken`.
 */
export function downloadScript(settings: string): string {
  return `(() => {
  const { address, pageToken } = ${settings};
  const follow = HTMLAnchorElement.prototype.click;
  const save = async (link) => {
    const asked = new URL(link.href);
    asked.searchParams.delete('access_token');
    const response = await fetch(asked, { headers: { authorization: 'Bearer ' + pageToken } });
    if (response.status === 204) throw new Error('The page has expired. Load it again.');
    if (!response.ok) throw new Error((await response.json()).detail);
    const saved = document.createElement('a');
    saved.href = URL.createObjectURL(await response.blob());
    saved.download = link.download;
    follow.call(saved);
    setTimeout(() => URL.revokeObjectURL(saved.href), 60000);
  };
  HTMLAnchorElement.prototype.click = function () {
    if (!this.href.startsWith(address + 'api/files/download?')) return follow.call(this);
    save(this).catch((error) => alert('The file was not downloaded: ' + error.message));
  };
})();`;
}
