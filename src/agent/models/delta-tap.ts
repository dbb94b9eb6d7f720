/**
 * Reads the event stream of an answer on its way to the AI SDK. Pieces of text, and figures of tokens, are reported
 * as they arrive. For the SDK, the pieces are joined into a few events for the whole answer, because its layers of
 * streams cost some hundred microseconds for each event. Everything else passes unchanged and in order.
 */
import type { DeltaFields, DeltaFormat, NamedFigures, Piece } from './delta-format.ts';

/** The blank line after an event. */
const BOUNDARY = /\r\n\r\n|\n\n|\r\r/g;
/** A boundary that ends in a new piece begins at most this many characters before the piece. */
const OVERLAP = 3;
/**
 * The most text that is held back from the SDK. It is limited because later code counts the length of the answer and
 * may stop it.
 */
const MAX_HELD_CHARS = 16 * 1024;
/** The longest event that is read. A longer event is passed on unread. */
const MAX_UNREAD_CHARS = 4 * 1024 * 1024;

interface Held {
  readonly piece: Piece;
  /** The fields before the data, such as the event's name. */
  readonly head: string;
  /** The latest event, whose other members are kept. */
  event: DeltaFields;
  text: string;
}

export class DeltaTap {
  readonly #format: DeltaFormat;
  readonly #tell: (piece: Piece) => void;
  readonly #onFigures: (named: NamedFigures) => void;
  readonly #decoder = new TextDecoder();
  /** The received pieces of an event that is not complete yet. */
  #unread: string[] = [];
  #unreadChars = 0;
  /** The last characters of the pieces, which may be the beginning of a boundary. */
  #tail = '';
  #held: Held | undefined;

  constructor(
    format: DeltaFormat,
    tell: (piece: Piece) => void,
    onFigures: (named: NamedFigures) => void = () => {},
  ) {
    this.#onFigures = onFigures;
    this.#format = format;
    this.#tell = tell;
  }

  /** Takes bytes of the stream and returns the next bytes for the SDK. */
  push(bytes: Uint8Array): string {
    const piece = this.#decoder.decode(bytes, { stream: true });
    // Only the new piece is searched and not the whole event, because a long event arrives in thousands of pieces.
    const searched = this.#tail + piece;
    BOUNDARY.lastIndex = 0;
    let found = BOUNDARY.exec(searched);
    this.#keep(piece);
    let out = '';
    if (found !== null) {
      const text = this.#takeUnread();
      const skipped = text.length - searched.length;
      let from = 0;
      for (; found !== null; found = BOUNDARY.exec(searched)) {
        out += this.#take(text.slice(from, skipped + found.index));
        from = skipped + BOUNDARY.lastIndex;
      }
      this.#keep(text.slice(from));
    }
    if (this.#unreadChars > MAX_UNREAD_CHARS) out += this.#release() + this.#takeUnread();
    return out;
  }

  /** Ends the stream and returns the rest for the SDK. */
  end(): string {
    this.#keep(this.#decoder.decode());
    return this.#release() + this.#takeUnread();
  }

  #keep(piece: string): void {
    if (piece === '') return;
    this.#unread.push(piece);
    this.#unreadChars += piece.length;
    this.#tail = (this.#tail + piece).slice(-OVERLAP);
  }

  #takeUnread(): string {
    const text = this.#unread.join('');
    this.#unread = [];
    this.#unreadChars = 0;
    this.#tail = '';
    return text;
  }

  #take(event: string): string {
    const at = event.startsWith('data:') ? 0 : event.indexOf('\ndata:') + 1;
    const fields = event.startsWith('data:', at) ? dataOf(event, at + 5) : undefined;
    const piece = fields === undefined ? undefined : this.#format.read(fields);
    const named = fields === undefined ? undefined : this.#format.figures(fields);
    if (named !== undefined) this.#onFigures(named);
    if (fields === undefined || piece === undefined) return `${this.#release()}${event}\n\n`;
    this.#tell(piece);
    let out = '';
    if (this.#held?.piece.place !== piece.place || this.#held.text.length > MAX_HELD_CHARS)
      out = this.#release();
    this.#held ??= { piece, head: event.slice(0, at), event: fields, text: '' };
    this.#held.text += piece.text;
    this.#held.event = fields;
    return out;
  }

  #release(): string {
    if (this.#held === undefined) return '';
    const { head, event, text } = this.#held;
    this.#held = undefined;
    return `${head}data: ${JSON.stringify(this.#format.write(event, text))}\n\n`;
  }
}

/** Returns the object in the last line of an event; undefined when that is not a JSON object. */
function dataOf(event: string, from: number): DeltaFields | undefined {
  if (event.indexOf('\n', from) >= 0) return undefined;
  try {
    const value: unknown = JSON.parse(event.slice(from));
    return typeof value === 'object' && value !== null ? (value as DeltaFields) : undefined;
  } catch {
    return undefined; // the SDK reports the error in this event
  }
}
