/** The destination of the gate's items. */
export interface CommitGateTargets<Item> {
  /** Receives the items in the order in which they came. */
  release(item: Item): void;
  /** Receives an item whose commit failed, in place of `release`. */
  drop(item: Item): void;
  /** Called each time waiting items have left the gate. */
  advanced(): void;
}

interface HeldItem<Item> {
  readonly item: Item;
  readonly wait: Wait;
}

/** The commit that these items wait for. */
interface Wait {
  readonly after: Promise<unknown> | undefined;
  state: 'waiting' | 'ready' | 'dropped';
}

const NOTHING: Wait = { after: undefined, state: 'ready' };

/**
 * Passes items on in order. An item that waits for a commit holds all later items. Items that wait for the same commit leave
 * together.
 */
export class CommitGate<Item> {
  readonly #targets: CommitGateTargets<Item>;
  readonly #line: HeldItem<Item>[] = [];

  constructor(targets: CommitGateTargets<Item>) {
    this.#targets = targets;
  }

  get isEmpty(): boolean {
    return this.#line.length === 0;
  }

  /** Adds an item. If the item waits for nothing, it is released within the call. */
  push(item: Item, after: Promise<unknown> | undefined): void {
    if (after === undefined && this.isEmpty) this.#targets.release(item);
    else this.#line.push({ item, wait: after === undefined ? NOTHING : this.#waitFor(after) });
  }

  #waitFor(after: Promise<unknown>): Wait {
    const last = this.#line.at(-1)?.wait;
    if (last?.after === after && last.state === 'waiting') return last;
    const wait: Wait = { after, state: 'waiting' };
    after.then(
      () => this.#advance(wait, 'ready'),
      () => this.#advance(wait, 'dropped'),
    );
    return wait;
  }

  /** Notes how the commit has ended, and passes on the items that no longer wait. */
  #advance(ended: Wait, state: 'ready' | 'dropped'): void {
    ended.state = state;
    let head = this.#line[0];
    if (head === undefined || head.wait.state === 'waiting') return;
    for (; head !== undefined && head.wait.state !== 'waiting'; head = this.#line[0]) {
      this.#line.shift();
      if (head.wait.state === 'ready') this.#targets.release(head.item);
      else this.#targets.drop(head.item);
    }
    this.#targets.advanced();
  }
}
