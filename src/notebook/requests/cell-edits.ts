/**
 * Turns the changes of cells that a client sends into the changes that the notebook makes. All possible mistakes are found before
 * any change is made.
 */
import { randomInt } from 'node:crypto';
import { AppError, type ErrorCode } from '#src/base/errors/errors.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import type { DocumentChange } from '#src/confined/processes/kernel/messages.ts';
import type { CellChange } from '#src/contract/wire/cell-changes.ts';
import { MAX_CELLS, MAX_CODE_CHARS, type NotebookView } from '../open/view.ts';
import { type CellConfig, configOf, isCellId, withConfig } from '../saved/document.ts';

export interface PlannedCellEdits {
  /** The requested changes, except those without an effect. */
  readonly changes: readonly DocumentChange[];
  /** For each requested change, the id of its cell. */
  readonly cellIds: readonly string[];
}

/** A cell of the notebook after the changes. */
interface DraftCell {
  code: string;
  options: Readonly<Record<string, unknown>>;
}

/** marimo's name of a cell without a name. */
const NAMELESS = '_';
const ID_LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The most steps along moved cells that one request may cause: some tens of milliseconds. */
const MAX_STEPS = 1_000_000;
/** Twice as long as the ids that a kernel makes, so that ids of both kinds never collide. */
const ID_LENGTH = 8;
/** How much an error shows of the id of a cell that the notebook does not have: the length of the longest id. */
const MAX_SHOWN_CHARS = 128;

/**
 * Checks the requested changes and returns them in the form in which they are applied. Applies none of them. Throws `unknown_cell`, `duplicate_cell` and
 * `invalid_request`, with the place of the mistake.
 */
export function planCellEdits(view: NotebookView, requested: readonly CellChange[]): PlannedCellEdits {
  const draft = new Draft(view);
  const changes: DocumentChange[] = [];
  const cellIds = requested.map((change, index) => {
    const planned = draft.take(change, `/changes/${index}`);
    if (planned.change !== undefined) changes.push(planned.change);
    return planned.cellId;
  });
  draft.requireOwnNames();
  return { changes, cellIds };
}

/** The notebook with the changes so far. */
class Draft {
  readonly #view: NotebookView;
  readonly #changed = new Map<string, DraftCell>();
  readonly #created = new Set<string>();
  readonly #deleted = new Set<string>();
  /** For each cell that was put next to another one, the id of the other one. */
  readonly #anchors = new Map<string, string>();
  /** The cells next to which another cell was placed. */
  readonly #neighbours = new Set<string>();
  /** The steps along moved cells so far, which show whether a cell is placed next to itself by way of others. */
  #steps = 0;
  /** The paths of changes that gave a cell its name. */
  readonly #named = new Map<string, string>();
  #cellRoom: number;
  #charRoom: number;

  constructor(view: NotebookView) {
    this.#view = view;
    ({ cells: this.#cellRoom, chars: this.#charRoom } = view.room);
  }

  take(
    change: CellChange,
    path: string,
  ): { readonly cellId: string; readonly change: DocumentChange | undefined } {
    if (change.type === 'create-cell') {
      const created = this.#create(change, path);
      return { cellId: created.cellId, change: created };
    }
    const { cellId } = change;
    const cell = this.#require(cellId, `${path}/cellId`);
    if (change.version != null && this.#created.has(cellId))
      throw refusal(
        'invalid_request',
        `${path}/version`,
        'names a version of a cell that this request creates',
      );
    return { cellId, change: this.#change(cell, change, path) };
  }

  #change(
    cell: DraftCell,
    change: Exclude<CellChange, { type: 'create-cell' }>,
    path: string,
  ): DocumentChange | undefined {
    const { type, cellId } = change;
    switch (type) {
      case 'delete-cell':
        this.#deleted.add(cellId);
        this.#named.delete(cellId);
        this.#cellRoom++;
        this.#charRoom += cell.code.length;
        return { type, cellId };
      case 'move-cell':
        return { type, cellId, ...this.#place(cellId, change, path, true) };
      case 'set-code': {
        const { code } = change;
        if (code === cell.code) return undefined;
        this.#requireChars(code.length - cell.code.length, path);
        cell.code = code;
        return { type, cellId, code };
      }
      case 'set-name': {
        const name = nameOf(change.name);
        if (name === configOf(cell.options).name) return undefined;
        cell.options = withConfig(cell.options, { name });
        if (name === '') this.#named.delete(cellId);
        else this.#named.set(cellId, `${path}/name`);
        return { type, cellId, name };
      }
      case 'set-config': {
        const before = settingsOf(cell.options);
        cell.options = withConfig(cell.options, change.config);
        const config = settingsOf(cell.options);
        return JSON.stringify(before) === JSON.stringify(config) ? undefined : { type, cellId, config };
      }
    }
  }

  #create(
    change: Extract<CellChange, { type: 'create-cell' }>,
    path: string,
  ): DocumentChange & { cellId: string } {
    const { type, code } = change;
    const cellId = change.cellId ?? this.#newId();
    if (!isCellId(cellId))
      throw refusal(
        'invalid_request',
        `${path}/cellId`,
        'must have up to 128 characters and no control characters',
      );
    if (this.#view.get(cellId) !== undefined || this.#created.has(cellId))
      throw refusal(
        'duplicate_cell',
        `${path}/cellId`,
        'is the id of another cell, or of one that this request deletes',
      );
    if (this.#cellRoom <= 0)
      throw refusal(
        'invalid_request',
        path,
        `would be cell ${MAX_CELLS + 1}: a notebook has at most ${MAX_CELLS}`,
      );
    this.#requireChars(code.length, path);
    const name = nameOf(change.name ?? '');
    const options = withConfig({}, { ...change.config, name });
    this.#cellRoom--;
    this.#created.add(cellId);
    this.#changed.set(cellId, { code, options });
    if (name !== '') this.#named.set(cellId, `${path}/name`);
    return {
      type,
      cellId,
      code,
      name,
      config: settingsOf(options),
      ...this.#place(cellId, change, path, false),
    };
  }

  /**
   * Throws `invalid_request` when a cell gets the name of another cell. Cells that share a name already may keep that name.
   */
  requireOwnNames(): void {
    if (this.#named.size === 0) return;
    const owners = new Map<string, string[]>();
    for (const id of [...this.#view.cells.map((cell) => cell.id), ...this.#created]) {
      if (this.#deleted.has(id)) continue;
      const name = this.#nameOf(id);
      if (name === '') continue;
      const known = owners.get(name);
      if (known === undefined) owners.set(name, [id]);
      else known.push(id);
    }
    for (const [id, path] of this.#named) {
      const other = owners.get(this.#nameOf(id))?.find((owner) => owner !== id);
      if (other !== undefined)
        throw refusal('invalid_request', path, `is the name of the cell ${other}, too`);
    }
  }

  #nameOf(cellId: string): string {
    return configOf((this.#changed.get(cellId) ?? this.#view.get(cellId))?.options ?? {}).name;
  }

  #place(
    cellId: string,
    { before = null, after = null }: { readonly before?: string | null; readonly after?: string | null },
    path: string,
    isMove: boolean,
  ): { readonly before: string | null; readonly after: string | null } {
    if (before !== null && after !== null)
      throw refusal('invalid_request', path, 'names a cell before and one after it: name one of them');
    const anchor = before ?? after;
    if (anchor === null) {
      if (isMove) throw refusal('invalid_request', path, 'names no place: name a cell in before or after');
      return { before, after };
    }
    const place = `${path}/${before === null ? 'after' : 'before'}`;
    this.#require(anchor, place);
    if (anchor === cellId || this.#follows(anchor, cellId, place))
      throw refusal(
        'invalid_request',
        place,
        `puts the cell ${cellId} next to itself, or next to one that was put next to it`,
      );
    this.#anchors.set(cellId, anchor);
    this.#neighbours.add(anchor);
    return { before, after };
  }

  /** Returns whether a cell was placed next to the other cell, directly or by way of further cells. */
  #follows(cellId: string, other: string, place: string): boolean {
    if (!this.#neighbours.has(other)) return false; // so that not every cell of a long row walks the row
    for (let next = this.#anchors.get(cellId); next !== undefined; next = this.#anchors.get(next)) {
      if (next === other) return true;
      if (++this.#steps > MAX_STEPS)
        throw refusal(
          'invalid_request',
          place,
          'moves cells next to moved cells too often for one request: send the changes in several',
        );
    }
    return false;
  }

  #require(cellId: string, path: string): DraftCell {
    const shown = cutText(cellId, 0, MAX_SHOWN_CHARS); // the place of a cell may name an id with megabytes
    return (
      this.#cell(cellId) ?? fail(refusal('unknown_cell', path, `names no cell of the notebook: ${shown}`))
    );
  }

  /** Returns the cell after the changes; undefined when it does not exist. */
  #cell(cellId: string): DraftCell | undefined {
    if (this.#deleted.has(cellId)) return undefined;
    const known = this.#changed.get(cellId);
    if (known !== undefined) return known;
    const cell = this.#view.get(cellId);
    if (cell === undefined) return undefined;
    const draft = { code: cell.code, options: cell.options };
    this.#changed.set(cellId, draft);
    return draft;
  }

  #requireChars(chars: number, path: string): void {
    this.#charRoom -= chars;
    if (chars <= 0 || this.#charRoom >= 0) return;
    const message = `makes the notebook too large: its code may have ${MAX_CODE_CHARS} characters together`;
    throw refusal('invalid_request', path, message);
  }

  #newId(): string {
    for (;;) {
      const id = Array.from({ length: ID_LENGTH }, () => ID_LETTERS[randomInt(ID_LETTERS.length)]).join('');
      if (this.#view.get(id) === undefined && !this.#created.has(id)) return id;
    }
  }
}

/** Returns the name of a cell that a client gives in marimo's form; empty for no name. */
export function nameOf(name: string): string {
  return name === NAMELESS ? '' : name;
}

function settingsOf(options: Readonly<Record<string, unknown>>): Omit<Required<CellConfig>, 'name'> {
  const { name: _, ...settings } = configOf(options);
  return settings;
}

function refusal(code: ErrorCode, path: string, message: string): AppError {
  return new AppError(code, `${path} ${message}.`, { errors: [{ path, message }] });
}

function fail(error: Error): never {
  throw error;
}
