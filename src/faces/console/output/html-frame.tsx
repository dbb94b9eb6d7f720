/** HTML of an output, in a frame that has no origin and can neither run nor load anything. */
import { useSignal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { BASE_URL } from '../state/server.ts';

const MIN_PX = 24;
const MAX_PX = 900;

export function HtmlFrame({ html, title }: { readonly html: string; readonly title: string }) {
  const frame = useRef<HTMLIFrameElement>(null);
  const isReady = useRef(false);
  const latest = useRef(html);
  latest.current = html;
  const height = useSignal(MIN_PX);
  const send = () => {
    const theme = document.documentElement.style.colorScheme || 'light dark';
    // The target is `*`, because the frame has no origin. Its policy and the policy of this page keep any other page out of the frame.
    frame.current?.contentWindow?.postMessage({ html: latest.current, theme }, '*');
  };
  // A layout effect, because the frame reports only once that it is ready, perhaps before a later listener exists. When the frame
  // is moved to another place of the page, it loads and reports again.
  useLayoutEffect(() => {
    const onMessage = ({ source, data }: MessageEvent<unknown>) => {
      if (source === null || source !== frame.current?.contentWindow) return;
      const told: { ready?: unknown; height?: unknown } = Object(data);
      if (typeof told.height === 'number') height.value = Math.min(Math.max(told.height, MIN_PX), MAX_PX);
      if (told.ready !== true) return;
      isReady.current = true;
      send();
    };
    addEventListener('message', onMessage);
    return () => removeEventListener('message', onMessage);
  }, []);
  useEffect(() => {
    if (isReady.current) send();
  }, [html]);
  return (
    <iframe
      ref={frame}
      class="html-frame"
      title={title}
      sandbox="allow-scripts"
      src={`${BASE_URL}/console/${FRAME_PAGE}`}
      style={{ height: `${height.value}px` }}
    />
  );
}
