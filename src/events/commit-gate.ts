/** Where the items of the gate go. */
export interface CommitGateTargets<Item> {
  /** Gets the items in the order they came. */
  release(item: Item): void;
  /** Gets the items whose promise failed, in their turn. */
  drop(item: Item): void;
  /** Called each time items have left that had to wait. */
  advanced(): void;
}

interface Place<Item> {
  readonly item: Item;
  state: 'waiting' | 'ready' | 'dropped';
}

/** Passes items on in the order they came. An item that waits for a commit holds all items that came after it. */
export class CommitGate<Item> {
  readonly #targets: CommitGateTargets<Item>;
  readonly #line: Place<Item>[] = [];

  constructor(targets: CommitGateTargets<Item>) {
    this.#targets = targets;
  }

  get isEmpty(): boolean {
    return this.#line.length === 0;
  }

  /** An item that has nothing to wait for is released within the call. */
  push(item: Item, after: Promise<unknown> | undefined): void {
    if (after === undefined) {
      if (this.isEmpty) this.#targets.release(item);
      else this.#line.push({ item, state: 'ready' });
      return;
    }
    const place: Place<Item> = { item, state: 'waiting' };
    this.#line.push(place);
    const mark = (state: 'ready' | 'dropped') => {
      place.state = state;
      this.#advance();
    };
    after.then(
      () => mark('ready'),
      () => mark('dropped'),
    );
  }

  #advance(): void {
    let head = this.#line[0];
    if (head === undefined || head.state === 'waiting') return;
    for (; head !== undefined && head.state !== 'waiting'; head = this.#line[0]) {
      this.#line.shift();
      if (head.state === 'ready') this.#targets.release(head.item);
      else this.#targets.drop(head.item);
    }
    this.#targets.advanced();
  }
}
