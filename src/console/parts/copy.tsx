import { useSignal } from '@preact/signals';

/** A button that copies a text. */
export function Copy({ label, text }: { readonly label: string; readonly text: string }) {
  const copied = useSignal('');
  const copy = async () => {
    // Browsers have a clipboard only where the page came over TLS or from this machine.
    if (navigator.clipboard === undefined) copyFromPage(text);
    else await navigator.clipboard.writeText(text);
    copied.value = text;
  };
  return (
    <button type="button" title={text} onClick={copy}>
      {copied.value === text ? 'Copied' : label}
    </button>
  );
}

function copyFromPage(text: string): void {
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}
