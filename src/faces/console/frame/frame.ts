/**
 * The only script of the page in which the HTML of outputs is shown. The page has no origin, its
 * policy allows no other script, and it cannot load or send anything. The script asks the parent
 * for the HTML, shows it, and reports how tall it is.
 */
const parentPage = window.parent;

addEventListener('message', ({ source, data }: MessageEvent<unknown>) => {
  if (source !== parentPage || typeof data !== 'object' || data === null || !('html' in data)) return;
  if ('theme' in data) document.documentElement.style.colorScheme = String(data.theme);
  const shown = new DOMParser().parseFromString(String(data.html), 'text/html');
  for (const element of shown.querySelectorAll('script, link, meta, base, iframe, object, embed, form'))
    element.remove();
  document.body.replaceChildren(...shown.querySelectorAll('style'), ...shown.body.childNodes);
});

// A link would replace this page, and its target must not be shown here. The middle button would
// open a tab.
for (const type of ['click', 'auxclick'])
  addEventListener(type, (event) => {
    if (event.target instanceof Element && event.target.closest('a, area') !== null) event.preventDefault();
  });

new ResizeObserver(() => {
  // The reported height is that of the body. The page itself is never less tall than its frame, so
  // with the page's height the frame could only grow.
  parentPage.postMessage({ height: document.body.scrollHeight }, '*');
}).observe(document.body);
parentPage.postMessage({ ready: true }, '*');
