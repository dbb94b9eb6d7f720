import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  /** Called once the dialog is closed: by its button, by Escape, or by its content. */
  readonly closed: () => void;
  /** Returns the content. It closes the dialog with `close`, so that the browser returns the focus before the dialog is removed. */
  readonly children: (close: () => void) => ComponentChildren;
}

/** A modal dialog. The browser keeps the focus in it, and returns the focus when it is closed. */
export function Dialog({ title, closed, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  const close = () => dialog.current?.close();
  return (
    <dialog class="jobs" ref={dialog} aria-label={title} onClose={closed}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" onClick={close}>
          Close
        </button>
      </header>
      {children(close)}
    </dialog>
  );
}
