/**
 * A worker's end of the channel to its primary. It keeps the newest table, sends heartbeats, and
 * passes on the primary's messages. A worker whose channel ends has lost its primary, and must end
 * at once.
 */

import { join } from 'node:path';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { SlotTable } from '#src/runtime/homes/slots.ts';
import type { Details, PrimaryAnswers, Question, ToPrimary, ToWorker, WorkerOrders } from '../messages.ts';
import type { ClusterChannel } from './channel.ts';

/** The channel that Node.js makes between this process and its parent. */
export interface ProcessChannel {
  send(message: ToPrimary): void;
  onMessage(listener: (message: ToWorker) => void): void;
}

type Message<Op extends ToWorker['op']> = Extract<ToWorker, { readonly op: Op }>;

/** Heartbeats are more frequent than the watchdog needs, because a busy worker sends them late. */
const BEAT_MS = 200;
/** The primary may leave this many heartbeats unanswered. */
const MAX_UNANSWERED = 10;

export class PrimaryLink implements ClusterChannel {
  readonly worker: number;
  readonly size: number;
  readonly secret: Uint8Array;
  /** The release of the primary. */
  readonly version: string;
  /** The folder of the sockets of workers and kernels. */
  readonly socketFolder: string;
  readonly servesProxies: boolean;
  readonly #channel: ProcessChannel;
  readonly #handlers = new Map<string, (message: never) => void>();
  readonly #tableListeners: ((table: SlotTable) => void)[] = [];
  /**
   * Heartbeats since the last message of the primary. Heartbeats are counted instead of time, because time also passes while this
   * worker itself is held up.
   */
  #unanswered = 0;
  #table: SlotTable;
  #release: (count: number) => Promise<readonly number[]> = async () => [];
  #drain: string | undefined;
  #onDrain: ((signal: string) => void) | undefined;
  #admit: ((port: number) => void) | undefined;
  #finish: (() => void) | undefined;
  /** The resolvers of questions, by their numbers. */
  readonly #asking = new Map<number, (answer: never) => void>();
  #questions = 0;

  /** Resolves with the first orders of the primary. */
  static open(channel: ProcessChannel): Promise<PrimaryLink> {
    return new Promise((resolve) => {
      let link: PrimaryLink | undefined;
      channel.onMessage((message) => {
        if (message.op === 'begin') {
          link = new PrimaryLink(channel, message);
          resolve(link);
        } else if (link !== undefined) link.#take(message);
      });
      channel.send({ op: 'loaded' });
    });
  }

  private constructor(channel: ProcessChannel, orders: WorkerOrders) {
    this.#channel = channel;
    this.worker = orders.worker;
    this.size = orders.size;
    this.secret = Buffer.from(orders.secret, 'hex');
    this.version = orders.version;
    this.socketFolder = orders.socketFolder;
    this.servesProxies = orders.servesProxies;
    this.#table = orders.table;
    setInterval(() => this.#beat(), BEAT_MS).unref(); // the watchdog still watches a draining worker
  }

  get isPrimarySilent(): boolean {
    return this.#unanswered > MAX_UNANSWERED;
  }

  get table(): SlotTable {
    return this.#table;
  }

  socketPath(worker: number): string {
    return peerSocketPath(this.socketFolder, worker);
  }

  onTable(listener: (table: SlotTable) => void): void {
    this.#tableListeners.push(listener);
  }

  onReleaseAsked(release: (count: number) => Promise<readonly number[]>): void {
    this.#release = release;
  }

  join(): Promise<number> {
    return new Promise((resolve) => {
      this.#admit = resolve;
      this.send({ op: 'join', table: this.#table.number });
    });
  }

  suspended(): Promise<void> {
    return new Promise((resolve) => {
      this.#finish = resolve;
      this.send({ op: 'suspended' });
    });
  }

  /** Sets the listener for the order to drain, and calls it at once if the order has already come. */
  onDrain(listener: (signal: string) => void): void {
    this.#onDrain = listener;
    if (this.#drain !== undefined) listener(this.#drain);
  }

  ask<Asked extends Question>(question: Asked, ...[about]: Details<Asked>): Promise<PrimaryAnswers[Asked]> {
    const request = ++this.#questions;
    return new Promise((resolve) => {
      this.#asking.set(request, resolve);
      this.send({ op: 'question', request, question, about });
    });
  }

  /** Sets the handler of one kind of message. Each kind has one. */
  on<Op extends ToWorker['op']>(op: Op, take: (message: Message<Op>) => void): void {
    this.#handlers.set(op, take);
  }

  send(message: ToPrimary): void {
    this.#channel.send(message);
  }

  #beat(): void {
    this.#unanswered++;
    this.send({ op: 'beat' });
  }

  #take(message: ToWorker): void {
    this.#unanswered = 0;
    if (message.op === 'table') this.#useTable(message.table);
    else if (message.op === 'admit') this.#admit?.(message.port);
    else if (message.op === 'finish') this.#finish?.();
    else if (message.op === 'release') {
      unawaited(this.#giveUp(message.count), 'primary-link: the release of slots');
    } else if (message.op === 'drain') {
      this.#drain = message.signal;
      this.#onDrain?.(message.signal);
    } else if (message.op === 'answer') {
      this.#asking.get(message.request)?.(message.answer as never);
      this.#asking.delete(message.request);
    } else this.#handlers.get(message.op)?.(message as never);
  }

  async #giveUp(count: number): Promise<void> {
    const table = this.#table.number;
    this.send({ op: 'released', table, slots: await this.#release(count) });
  }

  #useTable(table: SlotTable): void {
    if (table.number > this.#table.number) {
      this.#table = table;
      for (const listener of this.#tableListeners) listener(table);
    }
    this.send({ op: 'knows', table: table.number });
  }
}

/** Returns the path of the socket at which a worker listens for the others. */
export function peerSocketPath(folder: string, worker: number): string {
  return join(folder, `peer-${worker}.sock`);
}
