import type { KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import type { NotebookView } from '../open/view.ts';

/** How long text waits until it is stored. A run that ends earlier stores its text only at its end. */
const SAVE_AFTER_MS = 1000;
/** How many characters of the console of cells are stored at once. The rest follows with the next text. */
const MAX_CHARS_AT_ONCE = 1024 * 1024;

/**
 * Stores the printed text of a run while it runs: a second after new text, and never without new
 * text. Owns a timer, which `dispose` ends.
 */
export class PrintedWatch implements Disposable {
  readonly #save: (cellIds: readonly string[]) => void;
  /** Cells with text that is not stored yet. The cell that printed last is at the end. */
  readonly #changed = new Set<string>();
  /** Cells that have printed. */
  readonly #printed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  /** `save` stores the present text of these cells. */
  constructor(save: (cellIds: readonly string[]) => void) {
    this.#save = save;
  }

  /** Takes a message of the kernel. */
  follow(message: KernelMessage, view: NotebookView): void {
    if (message.op === 'cell-op' && message.console !== null && message.console.length > 0) {
      if (view.get(message.cellId) === undefined) return;
      this.#printed.add(message.cellId);
      this.#note(message.cellId, view);
    } else if (message.op === 'execution' && message.phase === 'completed') {
      if (this.#printed.has(message.cellId)) this.#note(message.cellId, view);
    }
  }

  #note(cellId: string, view: NotebookView): void {
    this.#changed.delete(cellId);
    this.#changed.add(cellId);
    this.#timer ??= setTimeout(() => this.#store(view), SAVE_AFTER_MS).unref();
  }

  #store(view: NotebookView): void {
    this.#timer = undefined;
    const now: string[] = [];
    let chars = 0;
    for (const cellId of [...this.#changed].reverse()) {
      if (chars > MAX_CHARS_AT_ONCE) break;
      this.#changed.delete(cellId);
      chars += view.get(cellId)?.console.heldChars ?? 0;
      now.push(cellId);
    }
    this.#save(now.reverse());
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}
