/**
 * What happens to the actors of a workspace, as event streams for operators: one stream for all kinds and one for each kind
 * that somebody asked for. A stream begins when it is first followed and ends some time after the last subscriber has left,
 * so that who comes back gets what was missed. While there is no stream, nothing is noted.
 *
 * All that one actor takes in one turn is one event, which is sent once the turn is on disk.
 */

import type { WorkspaceId } from '#src/core/ids.ts';
import type { EventSink, Subscription } from '#src/events/event-sink.ts';
import type { PublishedStream } from '#src/events/published-stream.ts';
import type { ActorStreamEnvelope } from '#src/wire/actor.ts';
import type { ActorChange, LeftAs } from './actor-watch.ts';
import { addressText } from './address.ts';
import { adviceOf } from './chart.ts';
import type { Inspectable } from './inspected-actor.ts';
import type { ActorRuntime } from './runtime.ts';
import { statePath } from './state-path.ts';

export type ActorStream = PublishedStream<ActorStreamEnvelope>;

export interface ActorEventsOptions {
  readonly runtime: ActorRuntime;
  readonly makeStream: () => ActorStream;
  /** Resolves once what was decided so far is on disk; undefined when it is. */
  readonly durable: () => Promise<void> | undefined;
  /** How long a stream stays without subscribers. */
  readonly lingerMs?: number;
}

export interface FollowActors {
  /** Only actors of this kind. */
  readonly kind?: string | undefined;
  readonly lastEventId: string;
}

/** A stream that is being made. */
interface Feed {
  readonly stream: ActorStream;
  end: NodeJS.Timeout | undefined;
}

/** What one actor took in this turn. */
interface Move {
  readonly type: 'moved';
  readonly actor: Inspectable;
  readonly from: unknown;
  readonly events: string[];
}

type Item = Move | Exclude<ActorChange, { type: 'moved' }>;

const LINGER_MS = 30_000;
/** Of the events that an actor took in one turn, the last ones are named. */
const MAX_NAMED_EVENTS = 16;

export class ActorEvents implements Disposable {
  readonly #options: ActorEventsOptions;
  /** By workspace and kind. */
  readonly #feeds = new Map<string, Feed>();
  #stopWatching: (() => void) | undefined;
  /** What happened in this turn, in order. */
  #items: Item[] = [];
  /** The last of the items for each actor, while it is a move. */
  readonly #moves = new Map<string, Move>();

  constructor(options: ActorEventsOptions) {
    this.#options = options;
  }

  /** Returns what attaches a subscriber, who gets the counts of actors and then what happens to them. */
  follow(workspaceId: WorkspaceId, { kind, lastEventId }: FollowActors): (sink: EventSink) => Subscription {
    return (sink) => {
      const { stream } = this.#feed(workspaceId, kind);
      const { runtime } = this.#options;
      const replay = (): ActorStreamEnvelope[] => {
        const { counts } = runtime.list(workspaceId, { ended: false, limit: 1 });
        const shown = counts.filter((count) => kind === undefined || count.kind === kind);
        return [{ type: 'actors.snapshot', data: { counts: shown } }];
      };
      return stream.subscribe(sink, { lastEventId, replay });
    };
  }

  [Symbol.dispose](): void {
    for (const [key, { end }] of this.#feeds) {
      clearTimeout(end);
      this.#feeds.delete(key);
    }
    this.#rest();
  }

  /** Tells every subscriber to connect again, because the server ends. */
  resyncAll(): void {
    for (const { stream } of this.#feeds.values()) stream.resync('server_stopping');
  }

  #feed(workspaceId: WorkspaceId, kind: string | undefined): Feed {
    const key = keyOf(workspaceId, kind);
    const known = this.#feeds.get(key);
    if (known !== undefined) {
      clearTimeout(known.end);
      known.end = undefined;
      return known;
    }
    const feed: Feed = { stream: this.#options.makeStream(), end: undefined };
    this.#feeds.set(key, feed);
    const { lingerMs = LINGER_MS } = this.#options;
    feed.stream.onEmpty(() => {
      clearTimeout(feed.end);
      feed.end = setTimeout(() => {
        this.#feeds.delete(key);
        this.#rest();
      }, lingerMs).unref();
    });
    this.#stopWatching ??= this.#options.runtime.watch.add((change) => this.#note(change));
    return feed;
  }

  /** Stops watching when there is no stream. */
  #rest(): void {
    if (this.#feeds.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  #note(change: ActorChange): void {
    const { workspaceId, kind } = change.actor.address;
    if (!this.#feeds.has(keyOf(workspaceId)) && !this.#feeds.has(keyOf(workspaceId, kind))) return;
    if (this.#items.length === 0) setImmediate(() => this.#publish());
    const address = addressText(change.actor.address);
    if (change.type !== 'moved') {
      this.#moves.delete(address);
      this.#items.push(change);
      return;
    }
    let move = this.#moves.get(address);
    if (move === undefined) {
      move = { type: 'moved', actor: change.actor, from: change.from, events: [] };
      this.#moves.set(address, move);
      this.#items.push(move);
    }
    if (change.event === undefined) return;
    move.events.push(change.event);
    if (move.events.length > MAX_NAMED_EVENTS) move.events.shift();
  }

  #publish(): void {
    const items = this.#items;
    this.#items = [];
    this.#moves.clear();
    const after = this.#options.durable();
    for (const item of items) {
      const { workspaceId, kind } = item.actor.address;
      const envelope = envelopeOf(item);
      this.#feeds.get(keyOf(workspaceId))?.stream.publish(envelope, after);
      this.#feeds.get(keyOf(workspaceId, kind))?.stream.publish(envelope, after);
    }
  }
}

function envelopeOf(item: Item): ActorStreamEnvelope {
  const { kind, id } = item.actor.address;
  const state = statePath(item.actor.state);
  switch (item.type) {
    case 'moved': {
      const { actor, from, events } = item;
      return {
        type: 'actor.moved',
        data: {
          kind,
          id,
          machine: actor.machine.id,
          from: from === undefined ? null : statePath(from),
          to: state,
          since: actor.updatedAt,
          revision: actor.revision,
          links: actor.shown().links,
          events,
        },
      };
    }
    case 'refused': {
      const { event, code } = item;
      return { type: 'actor.refused', data: { kind, id, state, event, code, ...adviceOf(code) } };
    }
    default: {
      const presence: LeftAs = item.presence;
      return { type: 'actor.left', data: { kind, id, state, presence } };
    }
  }
}

function keyOf(workspaceId: string, kind = ''): string {
  return `${workspaceId}/${kind}`;
}
