import type { Envelope } from '#src/contract/wire/events.ts';
import type { EventSink } from '#src/runtime/events/event-sink.ts';

export interface ReceivedFrame {
  readonly id: string;
  readonly time: string;
  /** The event without its time. */
  readonly event: Envelope;
}

/** A connection that remembers the bytes that it got and takes some only while `open`. */
export class RecordingSink implements EventSink {
  open = true;
  ended = false;
  /** How many bytes had been passed on when the connection was cut off. */
  lengthAtCutOff: number | undefined;
  writes = 0;
  text = '';

  write(bytes: Uint8Array): boolean {
    if (this.ended) throw new Error('written to after the end');
    this.writes++;
    this.text += Buffer.from(bytes).toString('utf8');
    return this.open;
  }

  end(): void {
    this.ended = true;
  }

  cutOff(last: Iterable<Uint8Array>): void {
    this.lengthAtCutOff = this.text.length;
    for (const piece of last) this.write(piece);
    this.end();
  }

  get frames(): ReceivedFrame[] {
    return parseFrames(this.text);
  }

  get events(): Envelope[] {
    return this.frames.map(({ event }) => event);
  }

  /** Each event as one short word, for asserting an order. */
  get story(): string[] {
    return this.events.map(storyOf);
  }
}

export function parseFrames(text: string): ReceivedFrame[] {
  return text
    .replace(/^(:|retry: \d+)\n/gm, '')
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const match = /^id: (\S+)\ndata: (.*)$/.exec(block);
      if (match === null) throw new Error(`no whole frame: ${JSON.stringify(block.slice(0, 200))}`);
      const { time, ...event } = JSON.parse(match[2]!);
      return { id: match[1]!, time, event };
    });
}

function storyOf(event: Envelope): string {
  if (event.type === 'console-output') return event.data.text.length > 20 ? 'text' : event.data.text;
  if (event.type === 'session.closed' || event.type === 'session.resync-required')
    return `${event.type} ${event.data.reason}`;
  return event.type;
}

export function text(words: string): Envelope {
  return { type: 'console-output', sessionId: 's', data: { cellId: 'c', channel: 'stdout', text: words } };
}

export const snapshot: Envelope = { type: 'session.snapshot', sessionId: 's', data: { status: 'ready' } };
export const closed: Envelope = { type: 'session.closed', sessionId: 's', data: { reason: 'closed' } };
