/**
 * Returns a script for the page that installs missing packages. marimo's page offers to install the packages that an import needs, and
 * its own server installs them into the kernel. Here they become packages of the workspace, as in the panel for packages, and the next
 * kernel has them. The script sends the request there, and tells the page how the installation goes, in marimo's own messages.
 *
 * marimo's page asks PyPI for the versions of a package, which the policy of the page does not allow. The script answers that there is
 * none to choose, so the page offers the latest one.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page and its `pageToken`.
 */
export function installScript(settings: string): string {
  return `(() => {
  const { address, pageToken } = ${settings};
  const POLL_MS = 2000, MAX_POLLS = 450, MAX_ATTEMPTS = 5;
  const RESTART = 'The packages are installed for all notebooks of the workspace. Restart the kernel to use them here.';
  const ask = window.fetch;
  let count = 0;

  const pause = () => new Promise((resolve) => setTimeout(resolve, POLL_MS));
  const read = async (path, init = {}) => {
    const headers = { authorization: 'Bearer ' + pageToken, 'content-type': 'application/json' };
    const response = await ask(address + 'api/packages/' + path, { headers, ...init });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.detail);
    return answer;
  };
  /** Waits for the installation that the workspace has now. Returns its error if it was this one; null otherwise. */
  const ended = async (requirements) => {
    for (let polls = 0; polls < MAX_POLLS; polls++) {
      const { installation } = await read('installation');
      if (installation === null) return null;
      const isThis = JSON.stringify(installation.requirements) === JSON.stringify(requirements);
      if (installation.error !== null) return isThis ? installation.error : null;
      await pause();
    }
    return 'The installation takes long. The panel for packages shows the packages once they are there.';
  };
  const install = async (body) => {
    for (let attempts = 0; attempts < MAX_ATTEMPTS; attempts++) {
      const outcome = await read('install', { method: 'POST', body });
      if (outcome.success) return outcome;
      const error = outcome.isInstalling ? await ended(outcome.requirements) : outcome.error;
      if (error !== null) throw new Error(error);
    }
    throw new Error('Other packages are being installed. Try again in a while.');
  };
  const follow = async (body) => {
    const { versions } = JSON.parse(body);
    const operation_id = 'troupe-' + ++count;
    const tell = (status, state) => {
      const packages = Object.fromEntries(Object.keys(versions).map((name) => [name, state]));
      const rest = { action: 'install', source: 'kernel', logs: {}, log_mode: 'append' };
      const data = { operation_id, status, packages, ...rest };
      window.dispatchEvent(new CustomEvent('troupe-message', { detail: { op: 'environment-operation', data } }));
    };
    tell({ kind: 'running' }, 'running');
    try {
      const { restartRequired } = await install(body);
      if (restartRequired) tell({ kind: 'restart-required', reason: RESTART }, 'restart-required');
      else tell({ kind: 'succeeded' }, 'succeeded');
    } catch (error) {
      tell({ kind: 'failed', error: error.message }, 'failed');
    }
  };

  window.fetch = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (url.startsWith('https://pypi.org/pypi/')) return Response.json({ info: { provides_extra: [] }, releases: {} });
    if (!url.startsWith(address + 'api/kernel/install_missing_packages')) return ask(input, init);
    void follow(await new Request(input, init).text());
    return Response.json({ success: true });
  };
})();`;
}
