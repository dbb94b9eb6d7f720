import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  /** Called once the dialog is closed: by its button, by Escape, or by its content. */
  readonly close: () => void;
  readonly children: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus in it, and returns the focus when it is closed. */
export function Dialog({ title, close, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog class="jobs" ref={dialog} aria-label={title} onClose={close}>
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  );
}
