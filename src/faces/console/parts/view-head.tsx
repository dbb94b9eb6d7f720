import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

interface ViewHeadProps {
  readonly title: string;
  /** Content next to the title: a state, an age. */
  readonly aside?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** The head of a view: its title, which is also the tab's title, and its actions. */
export function ViewHead({ title, aside, actions, children }: ViewHeadProps) {
  useEffect(() => {
    document.title = `${title} · Troupe`;
  }, [title]);
  return (
    <header class="view-head">
      <div class="title">
        <h1 tabIndex={-1}>{title}</h1>
        {aside}
      </div>
      {actions !== undefined && <div class="actions">{actions}</div>}
      {children}
    </header>
  );
}
