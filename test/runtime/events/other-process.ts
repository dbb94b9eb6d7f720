/** Another process of the server, as a stream sees it: its clients get their openings one by one, and the rest over feeds. */

import type { Envelope } from '#src/contract/wire/events.ts';
import type { ResyncReason } from '#src/contract/wire/shape.ts';
import type {
  EventSink,
  FeedChannel,
  FeedControls,
  FeedHead,
  FeedLink,
  Subscription,
} from '#src/runtime/events/event-sink.ts';
import { MirroredStream } from '#src/runtime/events/mirrored-stream.ts';
import type { SubscribeOptions } from '#src/runtime/events/published-stream.ts';
import { SessionStream, type SessionStreamOptions } from '#src/runtime/events/session-stream.ts';

export class OtherProcess implements FeedLink {
  readonly feeds: TestFeed[] = [];
  readonly #limitBytes: number;
  readonly cutOffs: ResyncReason[] = [];

  constructor(limitBytes = 1024 * 1024) {
    this.#limitBytes = limitBytes;
  }

  open(head: FeedHead, controls: FeedControls): FeedChannel {
    const options = {
      limitBytes: this.#limitBytes,
      heartbeats: undefined,
      budget: undefined,
      onCutOff: (reason: ResyncReason) => void this.cutOffs.push(reason),
    };
    const mirror = new MirroredStream(head, options, (isPressed) => controls.press(isPressed));
    const feed = new TestFeed(this.feeds.length, mirror, controls);
    this.feeds.push(feed);
    return feed;
  }

  /** Subscribes a client of this process to a stream of the other one. */
  subscribe(
    stream: Pick<SessionStream, 'subscribe'>,
    client: EventSink,
    options: SubscribeOptions<Envelope>,
  ): Subscription {
    let there: Subscription | undefined;
    const follow = (number: number, nextIndex: number) => {
      const { mirror } = this.feeds[number]!;
      there = mirror.subscribe(client, nextIndex);
    };
    const sink: EventSink = {
      relay: { link: this, follow },
      write: (bytes) => client.write(bytes),
      end: () => client.end(),
      cutOff: (last, reason) => client.cutOff(last, reason),
    };
    const home = stream.subscribe(sink, options);
    return {
      probe: () => (there ?? home).probe(),
      writable: () => (there ?? home).writable(),
      cutOff: (reason) => (there ?? home).cutOff(reason),
      close() {
        there?.close();
        home.close();
      },
    };
  }
}

/** A stream whose subscribers all are clients of one other process. */
export class StreamFollowedElsewhere extends SessionStream {
  readonly #process: OtherProcess;

  constructor(options: SessionStreamOptions) {
    super(options);
    this.#process = new OtherProcess(options.limitBytes);
  }

  override subscribe(client: EventSink, options: SubscribeOptions<Envelope>): Subscription {
    const here = { subscribe: (sink: EventSink) => super.subscribe(sink, options) };
    return this.#process.subscribe(here, client, options);
  }
}

/** A feed whose bytes arrive at once, or are held back on request. */
class TestFeed implements FeedChannel {
  readonly number: number;
  readonly mirror: MirroredStream;
  readonly controls: FeedControls;
  readonly #held: Buffer[] = [];
  isHeld = false;
  chunks = 0;
  isClosed = false;

  constructor(number: number, mirror: MirroredStream, controls: FeedControls) {
    this.number = number;
    this.mirror = mirror;
    this.controls = controls;
  }

  write(chunk: Uint8Array): boolean {
    this.chunks++;
    const bytes = Buffer.from(chunk);
    if (this.isHeld) this.#held.push(bytes);
    else this.mirror.take(bytes);
    return !this.isHeld;
  }

  /** The other process takes the held chunks, and more from now on. */
  goOn(): void {
    this.isHeld = false;
    for (const chunk of this.#held.splice(0)) this.mirror.take(chunk);
    this.controls.writable();
  }

  end(): void {
    this.mirror.end();
  }

  cutOff(_: readonly Uint8Array[], reason: ResyncReason): void {
    this.mirror.cutOff(reason);
  }

  close(): void {
    this.isClosed = true;
  }
}
