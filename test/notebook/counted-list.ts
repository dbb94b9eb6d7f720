/** A list that counts how often its items are read. */
export class CountedList extends Array<string> {
  reads = 0;
  override *[Symbol.iterator](): ArrayIterator<string> {
    for (let n = 0; n < this.length; n++) {
      this.reads++;
      yield this[n]!;
    }
  }
}
