/**
 * Returns a script for the page that says which hosts its content security policy has refused: otherwise a picture, a map or a chart of
 * another host would be empty without a word. Each host is named once, with the setting that allows it.
 *
 * A frame that an output writes itself (`srcdoc`) has the policy of the page and no origin, so the script adds a listener to its text.
 * Any script in an output can send the message of that listener, so the page shows nothing of it but the name of a host, as text.
 *
 * Nothing is said of MathJax: marimo's page asks for it with every chart of plotly, and only formulas in a chart need it.
 *
 * `settings` is JSON that is safe within a script element, with the `address` of the page.
 */
export function refusalScript(settings: string): string {
  return `(() => {
  const { address } = ${settings};
  const MAX_HOSTS = 20, MAX_HOST_CHARS = 300;
  const SETTING = 'TROUPE_PAGE_HOSTS', HEARD = 'troupe-refused', LISTENER = 'data-troupe-refusals';
  const UNNAMED = /^https:\\/\\/cdn\\.jsdelivr\\.net\\/npm\\/mathjax-full@/;
  const named = new Set();
  let list;

  const open = () => {
    const box = document.createElement('aside');
    box.id = 'troupe-refusals';
    box.setAttribute('role', 'status');
    box.style.cssText = 'position:fixed;left:12px;bottom:44px;z-index:60;max-width:min(30rem,calc(100vw - 24px));max-height:40vh;' +
      'overflow:auto;padding:10px 12px;border:1px solid #b45309;border-radius:6px;background:#fffbeb;color:#451a03;' +
      'font:13px/1.45 system-ui,sans-serif;overflow-wrap:anywhere';
    list = document.createElement('div');
    const close = document.createElement('button');
    close.type = 'button';
    close.textContent = 'Close';
    close.style.cssText = 'margin-top:6px;padding:1px 8px;border:1px solid currentColor;border-radius:4px';
    close.addEventListener('click', () => { box.remove(); list = undefined; });
    box.append(list, close);
    document.body.append(box);
  };
  const say = (sentence) => {
    if (list === undefined) open();
    const line = document.createElement('p');
    line.style.margin = '0 0 4px';
    line.textContent = sentence;
    list.append(line);
  };
  const isCode = (directive) => /^(script|style|worker)-src/.test(directive);
  const note = (blocked, directive) => {
    if (typeof blocked !== 'string' || typeof directive !== 'string' || document.body === null) return;
    const { protocol, origin } = URL.canParse(blocked) ? new URL(blocked) : {};
    if (!/^(https?|wss?):$/.test(protocol) || origin.length > MAX_HOST_CHARS) return;
    if (origin === new URL(address).origin || UNNAMED.test(blocked)) return;
    const key = (isCode(directive) ? 'code ' : '') + origin;
    if (named.has(key) || named.size > MAX_HOSTS) return;
    named.add(key);
    if (named.size > MAX_HOSTS) say('This page has refused more hosts.');
    else if (isCode(directive)) say('This page loads no scripts and style sheets of ' + origin + '. No setting allows it.');
    else
      say('This page loads nothing of ' + origin + ', because its policy allows no other hosts. ' +
        'The operator of the server can allow it, with the setting ' + SETTING + '.');
  };
  document.addEventListener('securitypolicyviolation', ({ blockedURI, effectiveDirective }) => note(blockedURI, effectiveDirective));
  window.addEventListener('message', ({ data }) => {
    if (data?.type === HEARD) note(data.blocked, data.directive);
  });

  const listener = '<script ' + LISTENER + '>document.addEventListener("securitypolicyviolation", (event) => parent.postMessage(' +
    '{ type: "' + HEARD + '", blocked: event.blockedURI, directive: event.effectiveDirective }, "*"));</' + 'script>';
  const frames = document.getElementsByTagName('iframe');
  const listen = () => {
    for (const frame of frames) {
      const text = frame.getAttribute('srcdoc');
      if (text === null || text.includes(LISTENER)) continue;
      const type = /^\\s*<!doctype[^>]*>/i.exec(text)?.[0] ?? '';
      frame.setAttribute('srcdoc', type + listener + text.slice(type.length));
    }
  };
  new MutationObserver(listen).observe(document, { subtree: true, childList: true, attributes: true, attributeFilter: ['srcdoc'] });
})();`;
}
