import { useEffect, useRef } from 'preact/hooks';

/**
 * The heading of a view, which is also the title of the page. It takes the focus when the view appears, because the link that led to
 * the view has gone with the view before.
 */
export function Heading({ id, title }: { readonly id: string; readonly title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <h2 id={id} ref={heading} tabIndex={-1} dir="auto">
      {title}
    </h2>
  );
}
