/**
 * The only script of the page in which the HTML of outputs is shown. The page has no origin, allows no other script, and cannot
 * load or send anything. The script asks the parent page for the HTML, shows the HTML, and reports its height.
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

// A click on a link would show the link's target in this frame, and a click of the middle button would open a tab. Neither is allowed.
for (const type of ['click', 'auxclick'])
  addEventListener(type, (event) => {
    if (event.target instanceof Element && event.target.closest('a, area') !== null) event.preventDefault();
  });

new ResizeObserver(() => {
  // The height of the body is reported. The page itself is never lower than its frame, so with the height of the page the frame
  // could only grow.
  parentPage.postMessage({ height: document.body.scrollHeight }, '*');
}).observe(document.body);
parentPage.postMessage({ ready: true }, '*');
