import type { Warning } from './turn-output.ts';

const COMPACTED = 'history_compacted';

/** The warnings for the user in the output of a prompt. */
export class TurnWarnings {
  readonly #warnings: Warning[] = [];

  get all(): readonly Warning[] {
    return this.#warnings;
  }

  add(code: string, message: string): void {
    this.#warnings.push({ type: 'warning', code, message });
  }

  /** Warns that the model did not see all of the history. A run has one such warning, with the counts of its last step. */
  addCompaction(outputs: number, prompts: number): void {
    if (outputs === 0 && prompts === 0) return;
    const left = [
      ...(outputs > 0 ? [`${outputs} older tool output${outputs === 1 ? '' : 's'}`] : []),
      ...(prompts > 0 ? [`${prompts} older prompt${prompts === 1 ? '' : 's'} with their answers`] : []),
    ];
    const known = this.#warnings.findIndex(({ code }) => code === COMPACTED);
    if (known >= 0) this.#warnings.splice(known, 1);
    this.add(
      COMPACTED,
      `The model no longer saw ${left.join(' and ')}: the history is longer than its window.`,
    );
  }
}
