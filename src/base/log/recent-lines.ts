const MAX_LINES = 500;
const MAX_CHARACTERS = 256 * 1024;

/** The last lines of the log, at most 500 and 256 Ki characters, for problem reports of operators. */
export class RecentLines {
  /** The lines, oldest first. Lines before `#first` are no longer kept. */
  #lines: string[] = [];
  #first = 0;
  #characters = 0;

  /** Takes one line, including its line break. */
  add(line: string): void {
    this.#lines.push(line);
    this.#characters += line.length;
    while (this.#lines.length - this.#first > MAX_LINES || this.#characters > MAX_CHARACTERS) {
      this.#characters -= this.#lines[this.#first]!.length;
      this.#lines[this.#first++] = '';
    }
    if (this.#first <= MAX_LINES) return;
    this.#lines = this.#lines.slice(this.#first);
    this.#first = 0;
  }

  /** Returns the lines without their line breaks, oldest first. */
  list(): string[] {
    return this.#lines.slice(this.#first).map((line) => line.trimEnd());
  }
}
