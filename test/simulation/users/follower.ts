/** A subscriber of a session: it reads the stream of events, loses its connection, lags, comes back, and notes what it has seen. */
import type { RunStatus } from '#src/contract/wire/run.ts';
import type { Connection } from '../http/connection.ts';
import { AnswerJudge, type AnswerEvent as StreamEvent } from '../judges/answers.ts';
import type { Ledger } from '../judges/ledger.ts';
import { OUTSIDE, type World, world } from '../world/world.ts';
import type { SimulatedClient } from './client.ts';

/** The stream of one session. */
export interface FollowedStream {
  readonly sessionId: string;
  readonly path: string;
}

/** The number of an event within one stream of one life. */
interface Place {
  readonly epoch: string;
  readonly seq: number;
}

const CUT_EVERY_MS = 3000;
const LAG_MS = 2000;
const MAX_PAUSE_MS = 300;
/** How often a connection that breaks has not delivered its last event. */
const UNDELIVERED = 0.4;

export class Follower {
  readonly #client: SimulatedClient;
  readonly #ledger: Ledger;
  readonly #name: string;
  readonly #session: string;
  readonly #path: string;
  readonly #world: World = world();
  readonly #random = world().ofUsers.fork();
  readonly #answers: AnswerJudge;
  #lastId = '';
  /** The event before the last one. */
  #idBefore = '';
  #connection: Connection | undefined;
  #isStopped = false;
  #isResting = false;
  /** When the present connection had got the state. */
  #openedAtMs = Number.POSITIVE_INFINITY;
  #readsSinceMs = 0;

  constructor(client: SimulatedClient, ledger: Ledger, name: string, { sessionId, path }: FollowedStream) {
    this.#client = client;
    this.#ledger = ledger;
    this.#name = name;
    this.#session = sessionId;
    this.#path = path;
    this.#answers = new AnswerJudge(this.#world, `the subscriber ${name}`);
    this.#connect();
    this.#disturb();
  }

  /** From now on nothing disturbs the subscriber. */
  rest(): void {
    this.#isResting = true;
    this.#readsSinceMs = this.#world.nowMs;
    this.#connection?.setReading(true);
  }

  /** Returns whether one connection has lived since `sinceMs`, and was read for the last `ms` milliseconds at least. */
  hasReadSince(sinceMs: number, ms: number): boolean {
    const isOver = this.#connection?.isOver !== false;
    return !isOver && this.#openedAtMs < sinceMs && this.#readsSinceMs < this.#world.nowMs - ms;
  }

  stop(): void {
    this.#isStopped = true;
    this.#connection?.leave();
  }

  #connect(): void {
    if (this.#isStopped) return;
    this.#openedAtMs = Number.POSITIVE_INFINITY;
    // The last event of a piece may be lost when the connection breaks within the piece.
    if (this.#idBefore !== '' && this.#random.is(UNDELIVERED)) this.#lastId = this.#idBefore;
    const reading = new Reading(this.#lastId, (id, event, raw, isLive) => this.#note(id, event, raw, isLive));
    let status = 0;
    const again = () => {
      this.#client.server.forget(connection);
      this.#world.after(5 + this.#random.next() * MAX_PAUSE_MS, () => this.#connect(), OUTSIDE);
    };
    const connection: Connection = this.#client.open(this.#path, this.#lastId, {
      head: (given) => {
        status = given;
      },
      chunk: (bytes) => {
        if (status === 200) reading.take(bytes);
      },
      ended: again,
      broken: again,
      refused: again,
    });
    this.#connection = connection;
  }

  /** Now and then the connection is cut, or the subscriber does not read for a while. */
  #disturb(): void {
    if (this.#isStopped || this.#isResting) return;
    const connection = this.#connection;
    if (connection !== undefined && !connection.isOver) {
      if (this.#random.is(0.3)) {
        this.#world.count('cut streams');
        connection.leave();
        this.#client.server.forget(connection);
        this.#world.after(this.#random.next() * MAX_PAUSE_MS, () => this.#connect(), OUTSIDE);
      } else if (this.#random.is(0.2)) {
        this.#world.count('lagging readers');
        connection.setReading(false);
        this.#readsSinceMs = Number.POSITIVE_INFINITY;
        const readAgain = () => {
          this.#readsSinceMs = this.#world.nowMs;
          connection.setReading(true);
        };
        this.#world.after(this.#random.next() * LAG_MS, readAgain, OUTSIDE);
      }
    }
    this.#world.after(this.#random.next() * CUT_EVERY_MS, () => this.#disturb(), OUTSIDE);
  }

  #note(id: string, event: StreamEvent, raw: string, isLive: boolean): void {
    if (isLive) this.#idBefore = this.#lastId;
    // A whole state replaces everything, so that a subscriber who has read it does not come back with an earlier event.
    if (event.type === 'session.snapshot' && event.resumed !== true) this.#idBefore = '';
    if (id !== '') this.#lastId = id;
    this.#world.count('events');
    this.#world.trace.add('event', `${this.#name} ${id} ${raw}`);
    if (event.type === 'session.replayed') this.#openedAtMs = this.#world.nowMs;
    this.#ledger.noteEvent({ session: this.#session, follower: this.#name, id, raw, isLive });
    this.#answers.takeEvent(id, event, isLive);
    if (event.type !== 'run-status' || event.data.status === 'running') return;
    this.#ledger.noteEnd({
      kind: 'end-seen',
      at: this.#world.nowMs,
      follower: this.#name,
      runId: String(event.data.runId),
      status: event.data.status as RunStatus,
      isLive,
    });
  }
}

/** The events of one connection. */
class Reading {
  readonly #note: (id: string, event: StreamEvent, raw: string, isLive: boolean) => void;
  #rest = '';
  #isLive = false;
  #last: Place | undefined;
  readonly #lastId: string;
  /** The last event that was received before, or was sent as missed; undefined when the state replaces all events. */
  #missed: Place | undefined;

  /** `lastId` is the last event of the connection before. */
  constructor(lastId: string, note: (id: string, event: StreamEvent, raw: string, isLive: boolean) => void) {
    this.#lastId = lastId;
    this.#note = note;
  }

  take(bytes: Buffer): void {
    const blocks = (this.#rest + bytes.toString()).split('\n\n');
    this.#rest = blocks.pop() ?? '';
    for (const block of blocks) this.#takeBlock(block);
  }

  #takeBlock(block: string): void {
    const fieldOf = (name: string) =>
      block
        .split('\n')
        .find((line) => line.startsWith(`${name}: `))
        ?.slice(name.length + 2);
    const raw = fieldOf('data');
    if (raw === undefined) return;
    const id = fieldOf('id') ?? '';
    const event = JSON.parse(raw) as StreamEvent;
    const place = placeOf(id);
    const isMarker = event.type === 'session.replayed';
    if (!this.#isLive) this.#takeOpening(id, event);
    if (!isMarker && this.#isLive && place !== undefined) this.#requireNext(place);
    if (isMarker) this.#last = pointOf(id);
    else if (this.#isLive && place !== undefined) this.#last = place;
    if (isMarker) this.#isLive = true;
    this.#note(id, event, raw, this.#isLive && !isMarker && place !== undefined);
  }

  /** A connection that goes on where the last one was cut gets all events in between. */
  #takeOpening(id: string, event: StreamEvent): void {
    if (event.type === 'session.snapshot' && event.resumed === true) this.#missed = pointOf(this.#lastId);
    const missed = this.#missed;
    const place = pointOf(id);
    if (missed === undefined || place === undefined) return;
    const isNext = place.epoch === missed.epoch && place.seq === missed.seq + 1;
    const isEnd = event.type === 'session.replayed';
    if (event.missed === true && isNext) this.#missed = place;
    else if (event.missed === true || (isEnd && place.seq !== missed.seq))
      world().problem(`a subscriber came back with ${missed.epoch}-${missed.seq} and got ${id} next`);
  }

  #requireNext(place: Place): void {
    const last = this.#last;
    if (last === undefined || (last.epoch === place.epoch && last.seq + 1 === place.seq)) return;
    world().problem(`a subscriber got the event ${place.epoch}-${place.seq} after ${last.epoch}-${last.seq}`);
  }
}

/** Returns the event up to which a subscriber has received everything, by the id of any event. */
function pointOf(id: string): Place | undefined {
  return placeOf(id.replace(/\.0\.\d+$/, ''));
}

function placeOf(id: string): Place | undefined {
  const [, epoch, seq] = /^([0-9a-f]+)-(\d+)$/.exec(id) ?? [];
  return epoch === undefined ? undefined : { epoch, seq: Number(seq) };
}
