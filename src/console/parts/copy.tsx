import { useSignal } from '@preact/signals';

/** A button that copies a text. */
export function Copy({ label, text }: { readonly label: string; readonly text: string }) {
  const isDone = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    isDone.value = true;
  };
  return (
    <button type="button" title={text} onClick={copy}>
      {isDone.value ? 'Copied' : label}
    </button>
  );
}
