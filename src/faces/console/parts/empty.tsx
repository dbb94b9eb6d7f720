import type { ComponentChildren } from 'preact';

/** The text of an empty view: why the view is empty, and how to fill it. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <svg viewBox="0 0 48 48" aria-hidden="true">
        <circle cx="24" cy="13" r="5" />
        <circle cx="12" cy="34" r="5" />
        <circle cx="36" cy="34" r="5" />
        <path d="M21.5 17.5 14.5 29.5M26.5 17.5l7 12M17 34h14" />
      </svg>
      <strong>{title}</strong>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

/** The placeholder of a view that loads. It appears only when loading takes a moment. */
export function Loading() {
  return (
    <div class="loading" role="status">
      Loading …
    </div>
  );
}
