/** Text as HTML lets it flow: white space collapses, blocks stand on lines of their own, `pre` stays as it is. */
export class TextFlow {
  /** Kept in pieces, because looking at the end of one long text after every word would take the square of its length. */
  readonly #parts: string[] = [];
  /** The end of the text: its line breaks, or its last character. */
  #tail = '';
  #space = false;
  /** Line breaks that must come before the next text. */
  #breaks = 0;

  /** Adds text in which white space counts as one space. */
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

  /** Adds text unchanged. */
  keep(text: string): void {
    if (text !== '') this.#write(text);
  }

  /** Adds an escape sequence that takes no room, such as the start of a colour. */
  mark(sequence: string): void {
    this.#settle();
    this.#parts.push(sequence);
    this.#tail = sequence.slice(-1);
  }

  /** Begins a new line for the next text, after `emptyLines`. */
  block(emptyLines = 0): void {
    this.#space = false;
    if (this.#parts.length > 0) this.#breaks = Math.max(this.#breaks, 1 + emptyLines);
  }

  lineBreak(): void {
    this.#space = false;
    this.#breaks++;
  }

  toString(): string {
    const lines = this.#parts.join('').split('\n').map(withoutSpaceAtEnd);
    const isFilled = (line: string) => line !== '';
    return lines.slice(lines.findIndex(isFilled), lines.findLastIndex(isFilled) + 1).join('\n');
  }

  #write(text: string): void {
    this.#settle();
    this.#parts.push(text);
    let start = text.length;
    while (start > 0 && text[start - 1] === '\n') start--;
    if (start > 0) this.#tail = start === text.length ? text.slice(-1) : text.slice(start);
    else this.#tail += text;
  }

  #settle(): void {
    if (this.#breaks > 0) {
      const present = this.#tail.startsWith('\n') ? this.#tail.length : 0;
      const missing = '\n'.repeat(Math.max(0, this.#breaks - present));
      this.#parts.push(missing);
      this.#tail = present > 0 ? this.#tail + missing : missing;
    } else if (this.#space && this.#parts.length > 0 && !/\s/.test(this.#tail)) {
      this.#parts.push(' ');
    }
    this.#breaks = 0;
    this.#space = false;
  }
}

/** Returns the line without the spaces and tabs at its end. */
function withoutSpaceAtEnd(line: string): string {
  let end = line.length;
  while (end > 0 && (line[end - 1] === ' ' || line[end - 1] === '\t')) end--;
  return line.slice(0, end);
}
