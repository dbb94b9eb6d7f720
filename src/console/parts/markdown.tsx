import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';

type Reader = typeof import('./markdown-elements.tsx').markdownElements;

/** A longer text is shown as it is. */
const MAX_CHARS = 50_000;

/** A text in Markdown, as elements of the page; as it is until the parser is loaded, which few pages need. */
export function Markdown({ text }: { readonly text: string }) {
  const reader = useSignal<{ readonly read: Reader } | undefined>(undefined);
  useEffect(() => {
    import('./markdown-elements.tsx').then(
      ({ markdownElements }) => {
        reader.value = { read: markdownElements };
      },
      () => undefined, // the server does not answer: the text stays as it is
    );
  }, []);
  const read = reader.value?.read;
  // A message of a conversation is drawn again with each word of the next one.
  const shown = useMemo(() => (text.length > MAX_CHARS ? undefined : read?.(text)), [text, read]);
  return shown === undefined ? <pre>{text}</pre> : <div class="markdown">{shown}</div>;
}
