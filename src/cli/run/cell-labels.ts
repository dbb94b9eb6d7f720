import type { RegisteredCell } from '#src/client/events.ts';

interface Label {
  readonly name: string;
  readonly firstLine: string;
}

const LINE_LIMIT = 60;

/** How cells are called to people: by their name, or else by their id, with the first line of their code. */
export class CellLabels {
  readonly #labels = new Map<string, Label>();

  add(cells: readonly Pick<RegisteredCell, 'cellId' | 'name' | 'code'>[]): void {
    for (const { cellId, name, code } of cells) {
      this.#labels.set(cellId, { name: isNamed(name) ? name : cellId, firstLine: firstLineOf(code) });
    }
  }

  name(cellId: string): string {
    return this.#labels.get(cellId)?.name ?? cellId;
  }

  firstLine(cellId: string): string {
    return this.#labels.get(cellId)?.firstLine ?? '';
  }
}

/** marimo calls a cell without a name `_`. */
function isNamed(name: string | null): name is string {
  return name !== null && name !== '' && name !== '_';
}

function firstLineOf(code: string): string {
  const line = code.split('\n').find((text) => text.trim() !== '' && !text.trim().startsWith('#')) ?? '';
  const characters = [...line.trim()];
  return characters.length > LINE_LIMIT
    ? `${characters.slice(0, LINE_LIMIT - 1).join('')}…`
    : characters.join('');
}
