/**
 * This worker's view of the cluster: the home of each slot, and the questions from other workers. All parts of the worker use
 * this class as their `Cluster`.
 */

import { createHash } from 'node:crypto';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Cluster, Topic, WorkersChange } from '#src/runtime/homes/cluster.ts';
import { SLOTS, type SlotTable, slotOf } from '#src/runtime/homes/slots.ts';
import type { ClusterChannel } from '../worker/channel.ts';
import type { MirrorMaker } from './feeds.ts';
import type { AnswerEvents, ForwardedHandler, ForwardedHead, ForwardedRequest } from './forwarding.ts';
import { FRAME } from './frame-socket.ts';
import { type Destination, RequestToPeer } from './outgoing-request.ts';
import { PeerClient } from './peer-client.ts';
import { type PeerAnswer, PeerServer } from './peer-server.ts';

const START_DIGITS = 12;

/** The primary's description of the cluster for a worker. */
export type Membership = Pick<
  ClusterChannel,
  'worker' | 'size' | 'secret' | 'table' | 'isPrimarySilent' | 'socketPath'
>;

export class Peers implements Cluster, Disposable {
  readonly worker: number;
  readonly size: number;
  readonly incarnation: string;
  /** The common beginning of the names of all workers of this start. */
  readonly #start: string;
  readonly #membership: Membership;
  readonly #onFault: (topic: string, error: unknown) => void;
  readonly #clients = new Map<number, PeerClient>();
  readonly #answers = new Map<Topic, (payload: unknown) => unknown>();
  readonly #listeners: (() => void)[] = [];
  readonly #workersListeners: ((change: WorkersChange) => void)[] = [];
  /** Slots of this worker that are about to move. This worker accepts no new requests for these slots. */
  readonly #released = new Set<number>();
  #table: SlotTable;
  #server: PeerServer | undefined;
  #makeMirror: MirrorMaker | undefined;

  /** `onFault` is called with each error that a handler throws while answering another worker's question. */
  constructor(membership: Membership, onFault: (topic: string, error: unknown) => void = () => undefined) {
    this.#membership = membership;
    this.#onFault = onFault;
    this.worker = membership.worker;
    this.size = membership.size;
    this.#table = membership.table;
    this.#start = createHash('sha256').update(membership.secret).digest('hex').slice(0, START_DIGITS);
    this.incarnation = `${this.#start}-${this.worker}`;
  }

  /** Resolves once others can send requests here. */
  async listen(handle: ForwardedHandler): Promise<void> {
    this.#server = await PeerServer.listen({
      path: this.#membership.socketPath(this.worker),
      secret: this.#membership.secret,
      misplaced: (slot) => (this.ownsSlot(slot) ? undefined : this.#table.number),
      handle,
      answer: (topic, payload) => this.#answers.get(topic as Topic)?.(payload),
      onFault: this.#onFault,
    });
  }

  get living(): number {
    return this.#table.workers.length;
  }

  livesElsewhere(incarnation: string): boolean {
    const worker = Number(incarnation.slice(START_DIGITS + 1));
    const isOfThisStart = incarnation.startsWith(this.#start);
    return isOfThisStart && worker !== this.worker && this.#table.workers.includes(worker);
  }

  get isPrimarySilent(): boolean {
    return this.#membership.isPrimarySilent;
  }

  owns(workspaceId: string, id?: string): boolean {
    return this.ownsSlot(slotOf(workspaceId, id));
  }

  onSlotsTaken(listener: () => void): void {
    this.#listeners.push(listener);
  }

  onAsked(topic: Topic, answer: (payload: unknown) => unknown): void {
    this.#answers.set(topic, answer);
  }

  onWorkersChanged(listener: (change: WorkersChange) => void): void {
    this.#workersListeners.push(listener);
  }

  async ask(worker: number, topic: Topic, payload: unknown): Promise<unknown> {
    if (!this.#table.workers.includes(worker)) return undefined;
    return (await this.#ask(worker, questionOf(topic, payload), undefined)).value;
  }

  async askOthers(topic: Topic, payload: unknown, withinMs?: number): Promise<readonly unknown[]> {
    const answers = await this.#askAll(questionOf(topic, payload), withinMs);
    return answers.map(({ value }) => value).filter((value) => value !== undefined);
  }

  async haveOthersAct(topic: Topic, payload: unknown): Promise<boolean> {
    const answers = await this.#askAll(questionOf(topic, payload), undefined);
    return !answers.some(({ hasFailed }) => hasFailed);
  }

  /** Sends a request to the worker in which its slot is at home. */
  forward(head: ForwardedHead, body: Uint8Array, events: AnswerEvents): ForwardedRequest {
    return new RequestToPeer({ head, body, events, destination: (slot) => this.#destinationOf(slot) });
  }

  /** Sets how event streams that other workers send here are mirrored. */
  onFeed(makeMirror: MirrorMaker): void {
    this.#makeMirror = makeMirror;
  }

  /** How many streams of other workers are mirrored here. */
  get mirrorCount(): number {
    return [...this.#clients.values()].reduce((sum, { mirrorCount }) => sum + mirrorCount, 0);
  }

  /** Takes the table of the primary. */
  useTable(table: SlotTable): void {
    if (table.number <= this.#table.number) return;
    const before = this.#table;
    this.#table = table;
    this.#released.clear();
    const living = new Set(table.workers);
    for (const [worker, client] of this.#clients) {
      if (living.has(worker)) continue;
      this.#clients.delete(worker);
      client.close();
    }
    const hasTaken = table.owners.some(
      (owner, slot) => owner === this.worker && before.owners[slot] !== owner,
    );
    if (hasTaken) for (const listener of this.#listeners) listener();
    const joined = table.workers.filter((worker) => !before.workers.includes(worker));
    const gone = before.workers.filter((worker) => !living.has(worker));
    if (joined.length + gone.length === 0) return;
    for (const listener of this.#workersListeners) listener({ joined, gone });
  }

  /** Releases up to `count` empty slots and returns them. New requests for these slots are no longer accepted. */
  release(count: number, isEmpty: (slot: number) => boolean): readonly number[] {
    const slots: number[] = [];
    for (let slot = 0; slot < SLOTS && slots.length < count; slot++) {
      if (this.ownsSlot(slot) && isEmpty(slot)) slots.push(slot);
    }
    for (const slot of slots) this.#released.add(slot);
    return slots;
  }

  /** Returns whether this worker makes all decisions about the notebooks, conversations and workspaces in the slot. */
  ownsSlot(slot: number): boolean {
    return this.#table.owners[slot] === this.worker && !this.#released.has(slot);
  }

  #destinationOf(slot: number): Destination {
    const owner = this.#table.owners[slot]!;
    if (owner !== this.worker) return this.#client(owner);
    return this.#released.has(slot) ? 'nowhere' : 'here';
  }

  #client(worker: number): PeerClient {
    const known = this.#clients.get(worker);
    if (known !== undefined) return known;
    const { secret } = this.#membership;
    const client = new PeerClient(this.#membership.socketPath(worker), secret, (head, press) => {
      invariant(this.#makeMirror !== undefined, 'A worker that asks others has a receiver of feeds.');
      return this.#makeMirror(head, press);
    });
    this.#clients.set(worker, client);
    return client;
  }

  #askAll(question: Buffer, withinMs: number | undefined): Promise<readonly PeerAnswer[]> {
    const others = this.#table.workers.filter((worker) => worker !== this.worker);
    return Promise.all(others.map((worker) => this.#ask(worker, question, withinMs)));
  }

  /** Resolves with the answer of the worker, or with an empty answer when the worker ends or takes too long. */
  #ask(worker: number, question: Buffer, withinMs: number | undefined): Promise<PeerAnswer> {
    const client = this.#client(worker);
    return new Promise((resolve) => {
      const finish = (answer: PeerAnswer) => {
        clearTimeout(timer);
        client.end(exchange);
        resolve(answer);
      };
      const timer = withinMs === undefined ? undefined : setTimeout(() => finish({}), withinMs);
      const exchange = client.begin({
        frame: (_, bytes) => finish(JSON.parse(bytes.toString('utf8')) as PeerAnswer),
        closed: () => finish({}),
      });
      client.send(FRAME.ask, exchange, question);
    });
  }

  [Symbol.dispose](): void {
    this.#server?.[Symbol.dispose]();
    for (const client of this.#clients.values()) client.close();
  }
}

function questionOf(topic: Topic, payload: unknown): Buffer {
  return Buffer.from(JSON.stringify({ topic, payload }));
}
