/** The keyboard: `g` and a letter open a view, `/` searches, `j` and `k` move through rows, `?` shows the keys. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { go, here } from '../state/route.ts';
import { VIEWS } from './views.ts';

export const isHelpOpen = signal(false);

const MAX_PAUSE_MS = 1500;

export function useKeys(): void {
  useEffect(() => {
    let ledAtMs = Number.NEGATIVE_INFINITY;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const isSecond = event.timeStamp - ledAtMs < MAX_PAUSE_MS;
      ledAtMs = Number.NEGATIVE_INFINITY;
      const view = isSecond ? VIEWS.find(({ key }) => key === event.key) : undefined;
      if (view !== undefined) go(here([view.name]));
      else if (event.key === 'g') ledAtMs = event.timeStamp;
      else if (event.key === '/') focusSearch();
      else if (event.key === '?') isHelpOpen.value = true;
      else if (event.key === 'j') moveFocus(1);
      else if (event.key === 'k') moveFocus(-1);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof Element &&
    target.closest('input:not([type=checkbox]), textarea, select, dialog') !== null
  );
}

/** Moves the focus to the search field of the view, or else to the search field in the top bar. */
function focusSearch(): void {
  const own = document.querySelector<HTMLInputElement>('main input[type=search]');
  (own ?? document.querySelector<HTMLInputElement>('.search input'))?.focus();
}

/** Moves the focus to the link of the next or previous row. */
function moveFocus(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>('main tbody tr')].flatMap(
    (row) => row.querySelector<HTMLElement>('a[href]') ?? [],
  );
  const at = links.findIndex((link) => link.closest('tr')?.contains(document.activeElement));
  const next = links[at === -1 ? 0 : at + step];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

/** The keys, as a dialog. */
export function KeyHelp() {
  return (
    <dialog
      aria-label="Keys"
      ref={(dialog) => {
        if (isHelpOpen.value && dialog?.open === false) dialog.showModal();
      }}
      onClose={() => {
        isHelpOpen.value = false;
      }}
    >
      <h2>Keys</h2>
      <dl class="key-list">
        {VIEWS.map(({ name, title, key }) => (
          <Key key={name} keys={['g', key]} title={title} />
        ))}
        <Key keys={['/']} title="Search" />
        <Key keys={['j']} title="Next row" />
        <Key keys={['k']} title="Row before" />
        <Key keys={['Enter']} title="Open the row" />
        <Key keys={['?']} title="These keys" />
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}

function Key({ keys, title }: { readonly keys: readonly string[]; readonly title: string }) {
  return (
    <div>
      <dt>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dt>
      <dd>{title}</dd>
    </div>
  );
}
