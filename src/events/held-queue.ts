/** Where the items of a line go. */
export interface HeldQueueTargets<Item> {
  /** Gets the items in the order they came. */
  release(item: Item): void;
  /** Gets the items whose promise failed, in their turn. */
  drop(item: Item): void;
  /** Called each time items have left the line later than they came. */
  advanced(): void;
}

interface Place<Item> {
  readonly item: Item;
  state: 'waiting' | 'ready' | 'dropped';
}

/** A line in which everyone waits for those in front: an item that waits for a promise holds all that came after it. */
export class HeldQueue<Item> {
  readonly #targets: HeldQueueTargets<Item>;
  readonly #line: Place<Item>[] = [];

  constructor(targets: HeldQueueTargets<Item>) {
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
    const settle = (state: 'ready' | 'dropped') => {
      place.state = state;
      this.#advance();
    };
    after.then(
      () => settle('ready'),
      () => settle('dropped'),
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
