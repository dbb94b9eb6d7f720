import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';

type Reader = typeof import('./markdown-elements.tsx').markdownElements;

/** A longer text is shown without formatting. */
const MAX_CHARS = 50_000;

/** Shows a text in Markdown. The parser is loaded when it is first needed, and until then the plain text is shown. */
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
  // Without the memo, each word of a new message would parse all earlier messages again.
  const shown = useMemo(() => (text.length > MAX_CHARS ? undefined : read?.(text)), [text, read]);
  return shown === undefined ? <pre>{text}</pre> : <div class="markdown">{shown}</div>;
}
