/**
 * What happens to the actors of a workspace, as event streams for operators: one for each choice
 * of what to follow that somebody has made. A stream begins when it is first followed and ends some time after the last subscriber has left, so
 * that who comes back gets what was missed. While there is no stream, nothing is noted.
 *
 * What happens is joined (actor-changes.ts) and sent at most ten times a second, once it is on disk. The first change after
 * a pause is sent at once.
 */

import type { WorkspaceId } from '#src/core/ids.ts';
import type { EventSink, Subscription } from '#src/events/event-sink.ts';
import type { PublishedStream } from '#src/events/published-stream.ts';
import type { ActorStreamEnvelope } from '#src/wire/actor.ts';
import { ActorChanges, type JoinedChange } from './actor-changes.ts';
import type { ActorCount } from './actor-list.ts';
import type { ActorChange } from './actor-watch.ts';
import type { Address } from './address.ts';
import { adviceOf } from './chart.ts';
import type { ActorRuntime } from './runtime.ts';
import { statePath } from './state-path.ts';

export type ActorStream = PublishedStream<ActorStreamEnvelope>;

export interface ActorEventsOptions {
  readonly runtime: Pick<ActorRuntime, 'watch' | 'countsOf'>;
  readonly makeStream: () => ActorStream;
  /** Resolves once what was decided so far is on disk; undefined when it is. */
  readonly durable: () => Promise<void> | undefined;
  /** How long a stream stays without subscribers. */
  readonly lingerMs?: number;
}

/** Which actors to follow, and what of them. */
export interface FollowActors {
  /** Only actors of this kind. */
  readonly kind?: string | undefined;
  /** Only the actor of this kind with this id. */
  readonly id?: string | undefined;
  /** Whether to send what each actor does; otherwise how many there are in each state, and what they refuse. */
  readonly moves: boolean;
  readonly lastEventId: string;
}

type Choice = Omit<FollowActors, 'lastEventId'>;

/** A stream that somebody follows, or did so lately. */
interface Feed {
  readonly workspaceId: WorkspaceId;
  readonly choice: Choice;
  readonly stream: ActorStream;
  /** The kinds that have moved since their counts were sent. */
  readonly movedKinds: Set<string>;
  countedAtMs: number;
  counting: NodeJS.Timeout | undefined;
  end: NodeJS.Timeout | undefined;
}

const LINGER_MS = 30_000;
const MIN_GAP_MS = 100;
const MIN_COUNTS_GAP_MS = 1_000;

export class ActorEvents implements Disposable {
  readonly #options: ActorEventsOptions;
  readonly #feeds = new Set<Feed>();
  readonly #changes = new ActorChanges();
  #stopWatching: (() => void) | undefined;
  #publishedAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ActorEventsOptions) {
    this.#options = options;
  }

  /** Returns what attaches a subscriber, who gets the counts of actors and then what happens to them. */
  follow(
    workspaceId: WorkspaceId,
    { lastEventId, ...choice }: FollowActors,
  ): (sink: EventSink) => Subscription {
    return (sink) => {
      const feed = this.#feed(workspaceId, choice);
      const replay = (): ActorStreamEnvelope[] => [
        { type: 'actors.snapshot', data: { counts: this.#count(feed) } },
      ];
      return feed.stream.subscribe(sink, { lastEventId, replay });
    };
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    for (const feed of this.#feeds) this.#end(feed);
  }

  /** Tells every subscriber to connect again, because the server ends. */
  resyncAll(): void {
    for (const { stream } of this.#feeds) stream.resync('server_stopping');
  }

  #feed(workspaceId: WorkspaceId, choice: Choice): Feed {
    for (const feed of this.#feeds) {
      if (feed.workspaceId !== workspaceId || !isSame(feed.choice, choice)) continue;
      clearTimeout(feed.end);
      feed.end = undefined;
      return feed;
    }
    const feed: Feed = {
      workspaceId,
      choice,
      stream: this.#options.makeStream(),
      movedKinds: new Set(),
      countedAtMs: Number.NEGATIVE_INFINITY,
      counting: undefined,
      end: undefined,
    };
    this.#feeds.add(feed);
    const { lingerMs = LINGER_MS, runtime } = this.#options;
    feed.stream.onEmpty(() => {
      clearTimeout(feed.end);
      feed.end = setTimeout(() => this.#end(feed), lingerMs).unref();
    });
    this.#stopWatching ??= runtime.watch.add((change) => this.#note(change));
    return feed;
  }

  /** Ends a stream; with the last one nothing is watched any more. */
  #end(feed: Feed): void {
    clearTimeout(feed.end);
    clearTimeout(feed.counting);
    this.#feeds.delete(feed);
    if (this.#feeds.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  #note(change: ActorChange): void {
    const { address } = change.actor;
    for (const feed of this.#feeds) {
      if (!concerns(feed, address)) continue;
      if (this.#changes.isEmpty) this.#schedule();
      this.#changes.add(change);
      return;
    }
  }

  #schedule(): void {
    const waitMs = this.#publishedAtMs + MIN_GAP_MS - performance.now();
    // What else happens in this turn belongs to it.
    if (waitMs <= 0) setImmediate(() => this.#publish());
    else this.#timer = setTimeout(() => this.#publish(), waitMs).unref();
  }

  #publish(): void {
    this.#publishedAtMs = performance.now();
    const after = this.#options.durable();
    for (const change of this.#changes.take()) {
      const envelope = envelopeOf(change);
      for (const feed of this.#feeds) {
        if (!concerns(feed, change.address)) continue;
        if (feed.choice.moves || change.type === 'refused') feed.stream.publish(envelope, after);
        else this.#countSoon(feed, change.address.kind);
      }
    }
  }

  /** Sends how many actors there are, after the gap. */
  #countSoon(feed: Feed, movedKind: string): void {
    feed.movedKinds.add(movedKind);
    const waitMs = Math.max(0, feed.countedAtMs + MIN_COUNTS_GAP_MS - performance.now());
    feed.counting ??= setTimeout(() => {
      feed.counting = undefined;
      feed.countedAtMs = performance.now();
      const data = { counts: this.#count(feed), moved: [...feed.movedKinds] };
      feed.movedKinds.clear();
      feed.stream.publish({ type: 'actors.counts', data }, this.#options.durable());
    }, waitMs).unref();
  }

  #count({ workspaceId, choice: { kind } }: Feed): ActorCount[] {
    const counts = this.#options.runtime.countsOf(workspaceId);
    return kind === undefined ? [...counts] : counts.filter((one) => one.kind === kind);
  }
}

/** Whether the stream is about the actor. */
function concerns({ workspaceId, choice }: Feed, address: Address): boolean {
  return (
    address.workspaceId === workspaceId &&
    (choice.kind === undefined || choice.kind === address.kind) &&
    (choice.id === undefined || choice.id === address.id)
  );
}

function isSame(one: Choice, other: Choice): boolean {
  return one.kind === other.kind && one.id === other.id && one.moves === other.moves;
}

function envelopeOf(change: JoinedChange): ActorStreamEnvelope {
  const { kind, id } = change.address;
  switch (change.type) {
    case 'moved': {
      const { actor, from, events } = change;
      return {
        type: 'actor.moved',
        data: {
          kind,
          id,
          machine: actor.machine.id,
          from: from === undefined ? null : statePath(from),
          to: statePath(actor.state),
          since: actor.updatedAt,
          revision: actor.revision,
          links: actor.shown().links,
          events,
        },
      };
    }
    case 'refused': {
      const { state, event, code, count } = change;
      return { type: 'actor.refused', data: { kind, id, state, event, code, count, ...adviceOf(code) } };
    }
    case 'left': {
      const { state, presence } = change;
      return { type: 'actor.left', data: { kind, id, state, presence } };
    }
  }
}
