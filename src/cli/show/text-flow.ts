/** Text as HTML lets it flow: white space collapses, blocks stand on lines of their own, `pre` stays as it is. */
export class TextFlow {
  #text = '';
  #space = false;
  /** Line breaks that are due before the next text. */
  #breaks = 0;

  /** Text in which white space counts as one space. */
  flow(text: string): void {
    const words = text.replace(/[ \t\r\n\f]+/g, ' ');
    if (words.trim() === '') {
      if (words !== '') this.#space = true;
      return;
    }
    if (words.startsWith(' ')) this.#space = true;
    this.#write(words.trim());
    this.#space = words.endsWith(' ');
  }

  /** Text that stays as it is. */
  keep(text: string): void {
    if (text !== '') this.#write(text);
  }

  /** Something that takes no room, such as the begin of a colour. */
  mark(sequence: string): void {
    this.#settle();
    this.#text += sequence;
  }

  /** The next text stands on a new line, `emptyLines` below. */
  block(emptyLines = 0): void {
    this.#space = false;
    if (this.#text !== '') this.#breaks = Math.max(this.#breaks, 1 + emptyLines);
  }

  lineBreak(): void {
    this.#space = false;
    this.#breaks++;
  }

  toString(): string {
    return this.#text.replace(/[ \t]+$/gm, '').replace(/^\n+|\n+$/g, '');
  }

  #write(text: string): void {
    this.#settle();
    this.#text += text;
  }

  #settle(): void {
    if (this.#breaks > 0) {
      const present = /\n*$/.exec(this.#text)?.[0].length ?? 0;
      this.#text += '\n'.repeat(Math.max(0, this.#breaks - present));
    } else if (this.#space && this.#text !== '' && !/\s$/.test(this.#text)) {
      this.#text += ' ';
    }
    this.#breaks = 0;
    this.#space = false;
  }
}
