/**
 * A button that changes something. If the change cannot be undone, the button asks for a confirmation. If the server refuses the
 * change, the reason is shown.
 */
import { useSignal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { Problem } from './problem.tsx';

interface ActionProps {
  readonly label: string;
  readonly run: () => Promise<unknown>;
  /** The question to confirm before the action. */
  readonly confirm?: string;
  readonly onDone?: () => void;
  readonly isDanger?: boolean;
  /** The id of the sentence that says why the user may not do this. The button then does nothing. */
  readonly whyNot?: string | undefined;
}

export function Action({ label, run, confirm, onDone, isDanger = false, whyNot }: ActionProps) {
  const state = useSignal<'ready' | 'asking' | 'busy'>('ready');
  const error = useSignal<unknown>(undefined);
  const button = useRef<HTMLButtonElement>(null);
  const hasFocus = useRef(false);
  const isAsking = state.value === 'asking';
  // The pressed button disappears and loses the focus. So the button that cancels gets the focus.
  useLayoutEffect(() => {
    if (hasFocus.current) button.current?.focus();
    hasFocus.current = isAsking;
  }, [isAsking]);
  const perform = async () => {
    state.value = 'busy';
    error.value = undefined;
    try {
      await run();
      onDone?.();
    } catch (reason) {
      error.value = reason;
    }
    state.value = 'ready';
  };
  return (
    <div class="action">
      {isAsking ? (
        <fieldset>
          <legend>{confirm}</legend>
          <button type="button" class="danger" onClick={perform}>
            {label}
          </button>
          <button
            type="button"
            ref={button}
            class="quiet"
            onClick={() => {
              state.value = 'ready';
            }}
          >
            No
          </button>
        </fieldset>
      ) : (
        <button
          type="button"
          ref={button}
          class={isDanger ? 'danger' : ''}
          // `aria-disabled` in place of `disabled`, which would take away the focus.
          aria-disabled={state.value === 'busy' || whyNot !== undefined}
          aria-describedby={whyNot}
          onClick={() => {
            if (state.value === 'busy' || whyNot !== undefined) return;
            if (confirm === undefined) void perform();
            else {
              hasFocus.current = true;
              state.value = 'asking';
            }
          }}
        >
          {state.value === 'busy' ? `${label} …` : label}
        </button>
      )}
      {error.value !== undefined && (
        <div class="refusal">
          <Problem error={error.value} />
          <button
            type="button"
            class="quiet"
            onClick={() => {
              error.value = undefined;
            }}
          >
            Hide
          </button>
        </div>
      )}
    </div>
  );
}
