/** A subscriber of a session: it reads the stream of events, loses its connection, lags, comes back, and notes what it has seen. */
import type { RunStatus } from '#src/contract/wire/run.ts';
import type { Connection } from '../http/connection.ts';
import type { Ledger } from '../judges/ledger.ts';
import { OUTSIDE, type World, world } from '../world/world.ts';
import type { SimulatedClient } from './client.ts';

interface StreamEvent {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** The number of an event within one stream of one life. */
interface Place {
  readonly epoch: string;
  readonly seq: number;
}

const CUT_EVERY_MS = 3000;
const LAG_MS = 2000;
const MAX_PAUSE_MS = 300;

export class Follower {
  readonly #client: SimulatedClient;
  readonly #ledger: Ledger;
  readonly #name: string;
  readonly #session: string;
  readonly #world: World = world();
  readonly #random = world().ofUsers.fork();
  #lastId = '';
  #connection: Connection | undefined;
  #isStopped = false;
  #isResting = false;

  constructor(client: SimulatedClient, ledger: Ledger, name: string, session: string) {
    this.#client = client;
    this.#ledger = ledger;
    this.#name = name;
    this.#session = session;
    this.#connect();
    this.#disturb();
  }

  /** From now on nothing disturbs the subscriber. */
  rest(): void {
    this.#isResting = true;
    this.#connection?.setReading(true);
  }

  stop(): void {
    this.#isStopped = true;
    this.#connection?.leave();
  }

  #connect(): void {
    if (this.#isStopped) return;
    const reading = new Reading((id, event, raw, isLive) => this.#note(id, event, raw, isLive));
    let status = 0;
    const again = () => {
      this.#client.server.forget(connection);
      this.#world.after(5 + this.#random.next() * MAX_PAUSE_MS, () => this.#connect(), OUTSIDE);
    };
    const path = `/api/v3/notebook-sessions/${this.#session}/events`;
    const connection: Connection = this.#client.open(path, this.#lastId, {
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
        this.#world.after(this.#random.next() * LAG_MS, () => connection.setReading(true), OUTSIDE);
      }
    }
    this.#world.after(this.#random.next() * CUT_EVERY_MS, () => this.#disturb(), OUTSIDE);
  }

  #note(id: string, event: StreamEvent, raw: string, isLive: boolean): void {
    if (id !== '') this.#lastId = id;
    this.#world.count('events');
    this.#world.trace.add('event', `${this.#name} ${id} ${raw}`);
    this.#ledger.noteEvent({ session: this.#session, follower: this.#name, id, raw, isLive });
    if (event.type !== 'run-status' || event.data.status === 'running') return;
    this.#ledger.history.push({
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

  constructor(note: (id: string, event: StreamEvent, raw: string, isLive: boolean) => void) {
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
    if (!isMarker && this.#isLive && place !== undefined) this.#requireNext(place);
    if (isMarker || (this.#isLive && place !== undefined)) this.#last = place;
    if (isMarker) this.#isLive = true;
    this.#note(id, event, raw, this.#isLive && !isMarker && place !== undefined);
  }

  #requireNext(place: Place): void {
    const last = this.#last;
    if (last === undefined || (last.epoch === place.epoch && last.seq + 1 === place.seq)) return;
    world().problem(`a subscriber got the event ${place.epoch}-${place.seq} after ${last.epoch}-${last.seq}`);
  }
}

function placeOf(id: string): Place | undefined {
  const [, epoch, seq] = /^([0-9a-f]+)-(\d+)$/.exec(id) ?? [];
  return epoch === undefined ? undefined : { epoch, seq: Number(seq) };
}
