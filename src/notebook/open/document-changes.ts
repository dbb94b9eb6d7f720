import type { DocumentChange } from '#src/confined/processes/kernel/messages.ts';
import { isCellId, withConfig } from '../saved/document.ts';
import type { NotebookView, ViewCell } from './view.ts';

const MAX_NAME_CHARS = 1000;

export interface AppliedChanges {
  /** New cells, and those whose code, name or settings changed. */
  readonly registered: readonly ViewCell[];
  readonly deleted: readonly string[];
  readonly reordered: boolean;
  /**
   * The changes that took effect. The place of each new or moved cell is given by a neighbour that
   * exists.
   */
  readonly changes: readonly DocumentChange[];
}

/**
 * Applies one document transaction of the kernel, or of a user (`isOfUser`), to the view, as a whole. Changes of missing cells, new cells with ids
 * that no client could give, and cells for which the notebook has no room are skipped, because the kernel's process is
 * not trusted.
 */
export function applyTransaction(
  view: NotebookView,
  changes: readonly DocumentChange[],
  isOfUser = false,
): AppliedChanges {
  const registered = new Map<string, ViewCell>();
  const deleted: string[] = [];
  const effective: DocumentChange[] = [];
  let order: CellOrder | undefined; // only for a transaction that changes the order
  for (const change of changes) {
    if (change.type === 'reorder-cells') {
      order ??= new CellOrder(view);
      order.moveToFront(change.cellIds);
      effective.push(change);
      continue;
    }
    if (change.type === 'create-cell') {
      const isFree = view.get(change.cellId) === undefined && view.hasRoomFor(change.code.length, true);
      if (!isFree || !isCellId(change.cellId) || change.name.length > MAX_NAME_CHARS) continue;
      const options = withConfig({}, { ...change.config, name: change.name });
      order ??= new CellOrder(view);
      order.append(change.cellId);
      registered.set(change.cellId, view.add(change.cellId, change.code, options, !isOfUser));
      order.place(change.cellId, change);
      effective.push({ ...change, ...order.placeOf(change.cellId) });
      continue;
    }
    const cell = view.get(change.cellId);
    if (cell === undefined) continue;
    switch (change.type) {
      case 'delete-cell':
        order ??= new CellOrder(view);
        order.remove(change.cellId);
        view.remove(change.cellId);
        registered.delete(change.cellId);
        deleted.push(change.cellId);
        break;
      case 'move-cell':
        order ??= new CellOrder(view);
        order.place(change.cellId, change);
        effective.push({ ...change, ...order.placeOf(change.cellId) });
        continue;
      case 'set-code':
        if (!view.hasRoomFor(change.code.length - cell.code.length, false)) continue;
        view.setCode(cell, change.code, isOfUser);
        registered.set(cell.id, cell);
        break;
      case 'set-name':
        if (change.name.length > MAX_NAME_CHARS) continue;
        view.setOptions(cell, withConfig(cell.options, { name: change.name }));
        registered.set(cell.id, cell);
        break;
      case 'set-config':
        view.setOptions(cell, withConfig(cell.options, change.config));
        registered.set(cell.id, cell);
        break;
    }
    effective.push(change);
  }
  const reordered = order?.apply() ?? false;
  return { registered: [...registered.values()], deleted, reordered, changes: effective };
}

/** A cell between its neighbours. */
interface Link {
  readonly id: string;
  previous: Link;
  next: Link;
}

/**
 * The order of a view's cells while a transaction changes it. It is a ring of links, so that a move takes as long in a
 * notebook of ten thousand cells as in one of ten. `apply` gives the view the new order, once.
 */
class CellOrder {
  readonly #view: NotebookView;
  readonly #before: readonly string[];
  readonly #links = new Map<string, Link>();
  /** The link before the first cell and after the last one, which closes the ring. */
  readonly #ends: Link;

  constructor(view: NotebookView) {
    this.#view = view;
    const ends = { id: '' } as Link;
    ends.previous = ends;
    ends.next = ends;
    this.#ends = ends;
    this.#before = view.order;
    for (const id of this.#before) this.append(id);
  }

  append(id: string): void {
    const link = { id } as Link;
    this.#links.set(id, link);
    insertAfter(this.#ends.previous, link);
  }

  remove(id: string): void {
    const link = this.#links.get(id);
    if (link === undefined) return;
    takeOut(link);
    this.#links.delete(id);
  }

  /** Puts a cell before or after another one. If the other cell does not exist, the cell stays where it is. */
  place(
    id: string,
    { before, after }: { readonly before: string | null; readonly after: string | null },
  ): void {
    const link = this.#links.get(id);
    const anchorId = before ?? after;
    const anchor = anchorId === null ? undefined : this.#links.get(anchorId);
    if (link === undefined || anchor === undefined || anchor === link) return;
    takeOut(link);
    insertAfter(before === null ? anchor : anchor.previous, link);
  }

  /** Returns the place of a cell by one of its neighbours: every copy of the notebook has that neighbour. */
  placeOf(id: string): { readonly before: string | null; readonly after: string | null } {
    const link = this.#links.get(id);
    if (link === undefined) return { before: null, after: null };
    const { previous, next } = link;
    if (previous !== this.#ends) return { before: null, after: previous.id };
    return { before: next === this.#ends ? null : next.id, after: null };
  }

  /** Puts these cells first. Unknown ids are ignored; the other cells keep their order. */
  moveToFront(ids: readonly string[]): void {
    let last = this.#ends;
    for (const id of new Set(ids)) {
      const link = this.#links.get(id);
      if (link === undefined) continue;
      takeOut(link);
      insertAfter(last, link);
      last = link;
    }
  }

  /** Gives the view the order. Returns whether the order or the cells differ from those before the transaction. */
  apply(): boolean {
    const order: string[] = [];
    for (let link = this.#ends.next; link !== this.#ends; link = link.next) order.push(link.id);
    const before = this.#before;
    const isSame = order.length === before.length && order.every((id, at) => id === before[at]);
    this.#view.reorder(order);
    return !isSame;
  }
}

function insertAfter(previous: Link, link: Link): void {
  link.previous = previous;
  link.next = previous.next;
  previous.next.previous = link;
  previous.next = link;
}

function takeOut(link: Link): void {
  link.previous.next = link.next;
  link.next.previous = link.previous;
}
