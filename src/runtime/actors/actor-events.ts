/**
 * The events of a workspace's actors as streams for operators, one stream for each followed selection. A stream begins with its
 * first subscriber. It ends some time after the last one has left, so that a returning subscriber gets the missed events. Without
 * a stream, no events are recorded.
 *
 * Events are joined (actor-changes.ts) and sent at most ten times a second, once they are on disk. A change is sent at once if
 * nothing was sent in the last tenth of a second. Actors of the workspace can be in any worker. As long as there is a stream, the
 * other workers report the events of their actors to the home of the stream (actor-reporter.ts).
 */

import type { WorkspaceId } from '#src/base/ids.ts';
import { Pace } from '#src/base/time/pace.ts';
import type { ActorCount, ActorStreamEnvelope } from '#src/contract/wire/actor.ts';
import type { Store } from '#storage/store.ts';
import type { EventSink, Subscription } from '../events/event-sink.ts';
import type { PublishedStream } from '../events/published-stream.ts';
import { ActorChanges } from './actor-changes.ts';
import { envelopeOf } from './actor-envelope.ts';
import { type ActorInterest, type ChosenActors, concerns, isSameChoice } from './actor-interest.ts';
import { mergeCounts } from './actor-list.ts';
import { type ActorReport, type ActorReports, REPORT_GAP_MS } from './actor-reporter.ts';
import type { ActorChange } from './actor-watch.ts';
import type { Address } from './address.ts';
import type { ActorRuntime } from './runtime.ts';

export type ActorStream = PublishedStream<ActorStreamEnvelope>;

/** The actors in the memory of other workers. */
export interface ActorsElsewhere {
  /** Asks the other workers to report events of these actors from now on, in place of the earlier selection. */
  follow(interests: readonly ActorInterest[]): void;
  /**
   * Resolves with the number of the workspace's actors in the other workers, once these workers have stopped reporting the earlier
   * selection.
   */
  countsOf(workspaceId: WorkspaceId): Promise<readonly ActorCount[]>;
}

/** The actors of this worker, and the store of their decisions. */
interface OwnActors {
  readonly runtime: Pick<ActorRuntime, 'watch' | 'countsOf'>;
  readonly store: Pick<Store, 'durable'>;
}

/** The actors to follow, and the kind of events. */
export interface FollowActors extends ChosenActors {
  readonly lastEventId: string;
}

/** A stream that has subscribers, or had some lately. */
interface FollowedStream extends ActorInterest {
  readonly workspaceId: WorkspaceId;
  readonly stream: ActorStream;
  /** The kinds that have moved since their counts were sent. */
  readonly movedKinds: Set<string>;
  /** Decides when counts are sent. */
  readonly counting: Pace;
  end: NodeJS.Timeout | undefined;
}

const LINGER_MS = 30_000;
const MIN_COUNTS_GAP_MS = 1_000;

export class ActorEvents implements Disposable {
  readonly #own: OwnActors;
  readonly #makeStream: () => ActorStream;
  readonly #elsewhere: ActorsElsewhere | undefined;
  readonly #followed = new Set<FollowedStream>();
  readonly #changes = new ActorChanges();
  /** The reports of other workers since the last sending. */
  #reports: ActorReport[] = [];
  readonly #pace = new Pace(REPORT_GAP_MS, () => this.#publish());
  #stopWatching: (() => void) | undefined;

  /** Without `elsewhere`, the server is one process. */
  constructor(own: OwnActors, makeStream: () => ActorStream, elsewhere: ActorsElsewhere | undefined) {
    this.#own = own;
    this.#makeStream = makeStream;
    this.#elsewhere = elsewhere;
  }

  /** Resolves with a function that attaches a subscriber, which gets the counts of actors and then the events. */
  async follow(
    workspaceId: WorkspaceId,
    { lastEventId, ...choice }: FollowActors,
  ): Promise<(sink: EventSink) => Subscription> {
    const followed = this.#follow(workspaceId, choice);
    const elsewhere = (await this.#elsewhere?.countsOf(workspaceId)) ?? [];
    return (sink) => {
      const replay = (): ActorStreamEnvelope[] => [
        { type: 'actors.snapshot', data: { counts: this.#count(followed, elsewhere) } },
      ];
      const subscription = followed.stream.subscribe(sink, { lastEventId, replay });
      // While actors in other workers were counted, they may have changed without an event.
      if (!this.#followed.has(followed)) followed.stream.resync('server_stopping');
      return subscription;
    };
  }

  /** Takes the report of another worker. */
  take({ reports, isIncomplete }: ActorReports): void {
    if (isIncomplete) this.restart();
    if (this.#followed.size === 0) return;
    for (const report of reports) this.#reports.push(report);
    this.#pace.ask();
  }

  /** The workspaces that somebody follows. */
  get workspaces(): ReadonlySet<WorkspaceId> {
    return new Set([...this.#followed].map(({ workspaceId }) => workspaceId));
  }

  /** Asks the subscribers of one workspace, or of all workspaces, to read the lists again, because events are missing. */
  restart(workspaceId?: WorkspaceId): void {
    for (const followed of this.#followed) {
      if (workspaceId !== undefined && followed.workspaceId !== workspaceId) continue;
      this.#end(followed);
      followed.stream.resync('server_stopping');
    }
  }

  /** Asks the other workers to report the followed events, including workers that have started since the last call. */
  followElsewhere(): void {
    this.#elsewhere?.follow([...this.#followed].map(({ workspaceId, choice }) => ({ workspaceId, choice })));
  }

  [Symbol.dispose](): void {
    this.#pace[Symbol.dispose]();
    this.#stopWatching?.();
    for (const { end, counting } of this.#followed) {
      clearTimeout(end);
      counting[Symbol.dispose]();
    }
  }

  /** Asks every subscriber to connect again, because the server ends. */
  resyncAll(): void {
    for (const { stream } of this.#followed) stream.resync('server_stopping');
  }

  #follow(workspaceId: WorkspaceId, choice: ChosenActors): FollowedStream {
    for (const followed of this.#followed) {
      if (followed.workspaceId !== workspaceId || !isSameChoice(followed.choice, choice)) continue;
      this.#linger(followed);
      return followed;
    }
    const followed: FollowedStream = {
      workspaceId,
      choice,
      stream: this.#makeStream(),
      movedKinds: new Set(),
      counting: new Pace(MIN_COUNTS_GAP_MS, () => this.#publishCounts(followed)),
      end: undefined,
    };
    this.#followed.add(followed);
    followed.stream.onEmpty(() => this.#linger(followed));
    this.#linger(followed);
    this.#stopWatching ??= this.#own.runtime.watch.add((change) => this.#note(change));
    this.followElsewhere();
    return followed;
  }

  /** Ends the stream after a while, unless it has a subscriber by then. */
  #linger(followed: FollowedStream): void {
    clearTimeout(followed.end);
    const endUnused = () => {
      if (followed.stream.subscriberCount === 0) this.#end(followed);
    };
    followed.end = setTimeout(endUnused, LINGER_MS).unref();
  }

  /** Ends a stream. After the last stream has ended, actors are no longer watched. */
  #end(followed: FollowedStream): void {
    clearTimeout(followed.end);
    followed.counting[Symbol.dispose]();
    if (!this.#followed.delete(followed)) return;
    this.followElsewhere();
    if (this.#followed.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }

  #note(change: ActorChange): void {
    const { address } = change.actor;
    for (const followed of this.#followed) {
      if (!concerns(followed, address)) continue;
      this.#changes.add(change);
      this.#pace.ask();
      return;
    }
  }

  #publish(): void {
    const after = this.#own.store.durable();
    for (const change of this.#changes.take()) this.#tell(change.address, envelopeOf(change), after);
    const reports = this.#reports;
    this.#reports = [];
    for (const { address, envelope } of reports) this.#tell(address, envelope, undefined);
  }

  #tell(address: Address, envelope: ActorStreamEnvelope | undefined, after: Promise<void> | undefined): void {
    for (const followed of this.#followed) {
      if (!concerns(followed, address)) continue;
      if (envelope !== undefined && (followed.choice.moves || envelope.type === 'actor.refused'))
        followed.stream.publish(envelope, after);
      else {
        followed.movedKinds.add(address.kind);
        followed.counting.ask();
      }
    }
  }

  /** Sends the counts of actors. */
  async #publishCounts(followed: FollowedStream): Promise<void> {
    const moved = [...followed.movedKinds];
    followed.movedKinds.clear();
    const elsewhere = (await this.#elsewhere?.countsOf(followed.workspaceId)) ?? [];
    const data = { counts: this.#count(followed, elsewhere), moved };
    followed.stream.publish({ type: 'actors.counts', data }, this.#own.store.durable());
  }

  #count(
    { workspaceId, choice: { kind } }: FollowedStream,
    elsewhere: readonly ActorCount[],
  ): readonly ActorCount[] {
    const own = this.#own.runtime.countsOf(workspaceId);
    const counts = elsewhere.length === 0 ? own : mergeCounts([own, elsewhere]);
    return kind === undefined ? counts : counts.filter((one) => one.kind === kind);
  }
}
