/** A button that changes something: it asks once more when that cannot be undone, and shows why it was refused. */
import { useSignal } from '@preact/signals';
import { Problem } from './problem.tsx';

interface ActionProps {
  readonly label: string;
  readonly run: () => Promise<unknown>;
  /** What is asked before. */
  readonly confirm?: string;
  readonly onDone?: () => void;
  readonly isDanger?: boolean;
}

export function Action({ label, run, confirm, onDone, isDanger = false }: ActionProps) {
  const state = useSignal<'ready' | 'asking' | 'busy'>('ready');
  const error = useSignal<unknown>(undefined);
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
      {state.value === 'asking' ? (
        <fieldset>
          <legend>{confirm}</legend>
          <button type="button" class="danger" onClick={perform}>
            {label}
          </button>
          <button
            type="button"
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
          class={isDanger ? 'danger' : ''}
          disabled={state.value === 'busy'}
          onClick={() => {
            if (confirm === undefined) void perform();
            else state.value = 'asking';
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
