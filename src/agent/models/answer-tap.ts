/**
 * Listens in on the event stream of an answer. Pieces of text are told as they come and joined for the AI SDK, whose
 * layers of streams cost some hundred microseconds for each event: of a whole answer it gets a few. Everything else passes
 * as it is, in its order.
 */
import type { DeltaFormat, Fields, Piece } from './delta-format.ts';

/** The blank line behind an event. */
const BOUNDARY = /\r\n\r\n|\n\n|\r\r/g;
/** In characters. Pieces are held back so long, so that whoever counts the answer's length still can. */
const MOST_HELD = 16 * 1024;
/** Of one event; it passes unread behind that. */
const MOST_UNREAD = 4 * 1024 * 1024;

interface Held {
  readonly piece: Piece;
  /** The fields before the data, such as the event's name. */
  readonly head: string;
  /** The latest one, whose other members count. */
  event: Fields;
  text: string;
}

export class AnswerTap {
  readonly #format: DeltaFormat;
  readonly #tell: (piece: Piece) => void;
  readonly #decoder = new TextDecoder();
  #rest = '';
  #held: Held | undefined;

  constructor(format: DeltaFormat, tell: (piece: Piece) => void) {
    this.#format = format;
    this.#tell = tell;
  }

  /** Takes bytes of the stream; answers what is for the SDK by now. */
  push(bytes: Uint8Array): string {
    const text = this.#rest + this.#decoder.decode(bytes, { stream: true });
    let out = '';
    let from = 0;
    BOUNDARY.lastIndex = 0;
    for (let found = BOUNDARY.exec(text); found !== null; found = BOUNDARY.exec(text)) {
      out += this.#take(text.slice(from, found.index));
      from = BOUNDARY.lastIndex;
    }
    this.#rest = text.slice(from);
    if (this.#rest.length > MOST_UNREAD) out += this.end();
    return out;
  }

  /** What is left when the stream has ended. */
  end(): string {
    const rest = this.#rest + this.#decoder.decode();
    this.#rest = '';
    return this.#release() + rest;
  }

  #take(event: string): string {
    const at = event.startsWith('data:') ? 0 : event.indexOf('\ndata:') + 1;
    const fields = event.startsWith('data:', at) ? dataOf(event, at + 5) : undefined;
    const piece = fields === undefined ? undefined : this.#format.read(fields);
    if (fields === undefined || piece === undefined) return `${this.#release()}${event}\n\n`;
    this.#tell(piece);
    let out = '';
    if (this.#held?.piece.place !== piece.place || this.#held.text.length > MOST_HELD) out = this.#release();
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

/** The object that is the last line of an event; undefined when it is something else. */
function dataOf(event: string, from: number): Fields | undefined {
  if (event.indexOf('\n', from) >= 0) return undefined;
  try {
    const value: unknown = JSON.parse(event.slice(from));
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined; // the SDK says what is wrong with it
  }
}
