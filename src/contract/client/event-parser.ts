/** One server-sent event: the last id that the stream has set, and the data. */
export interface ServerSentEvent {
  readonly lastEventId: string;
  readonly data: string;
}

/**
 * Splits the bytes of an event stream into events, in linear time however the bytes are cut. It ignores comments and
 * fields other than `id` and `data`. An event that the end of the stream cuts off is never returned.
 */
export class EventParser {
  readonly #decoder = new TextDecoder();
  /** The pieces of the incomplete line. They contain no line end and are not searched again. */
  #line: string[] = [];
  #data: string[] = [];
  #lastEventId = '';
  #endedWithReturn = false;

  /** The id of the last event that had one. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /** Returns the events that these bytes complete. */
  push(bytes: Uint8Array): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    const text = this.#decoder.decode(bytes, { stream: true });
    let start = this.#endedWithReturn && text.startsWith('\n') ? 1 : 0;
    if (text !== '') this.#endedWithReturn = text.endsWith('\r');
    for (const ending of text.matchAll(/\r\n|\n|\r/g)) {
      if (ending.index < start) continue;
      this.#line.push(text.slice(start, ending.index));
      start = ending.index + ending[0].length;
      const line = this.#line.join('');
      this.#line = [];
      this.#take(line, events);
    }
    if (start < text.length) this.#line.push(text.slice(start));
    return events;
  }

  #take(line: string, events: ServerSentEvent[]): void {
    if (line === '') {
      if (this.#data.length > 0) events.push({ lastEventId: this.#lastEventId, data: this.#data.join('\n') });
      this.#data = [];
      return;
    }
    const [, field, value = ''] = /^(data|id)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'data') this.#data.push(value);
    else if (field === 'id' && !value.includes('\0')) this.#lastEventId = value;
  }
}
