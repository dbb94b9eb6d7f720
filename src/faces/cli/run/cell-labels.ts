import type { RegisteredCell } from '#src/contract/wire/events.ts';

interface Label {
  readonly name: string;
  readonly firstLine: string;
}

const MAX_LINE_LENGTH = 60;

/** Labels of cells for people: the name, or else the id, and the first line of code. */
export class CellLabels {
  readonly #labels = new Map<string, Label>();

  /** Adds the cells that the session has registered. */
  add(cells: readonly Pick<RegisteredCell, 'cellId' | 'name' | 'code'>[]): void {
    for (const { cellId, name, code } of cells) {
      this.#labels.set(cellId, { name: isNamed(name) ? name : cellId, firstLine: firstLineOf(code) });
    }
  }

  /** Returns the name of a cell, or else its id. */
  name(cellId: string): string {
    return this.#labels.get(cellId)?.name ?? cellId;
  }

  /** Returns the first line of a cell's code that is not a comment. */
  firstLine(cellId: string): string {
    return this.#labels.get(cellId)?.firstLine ?? '';
  }
}

/** Returns whether the cell has a name. marimo writes `_` for a cell without a name. */
function isNamed(name: string | null): name is string {
  return name !== null && name !== '' && name !== '_';
}

function firstLineOf(code: string): string {
  const line = code.split('\n').find((text) => text.trim() !== '' && !text.trim().startsWith('#')) ?? '';
  const characters = [...line.trim()];
  return characters.length > MAX_LINE_LENGTH
    ? `${characters.slice(0, MAX_LINE_LENGTH - 1).join('')}…`
    : characters.join('');
}
