/**
 * The outputs that several pages of a notebook are being sent. A large output is encoded once, piece by piece as the fastest page takes
 * it, and kept until no page is in the middle of it. The kept bytes are charged to the budget of streams.
 */

import { SharedJson } from '#src/base/json/json-write.ts';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import { PIECE_BYTES } from '#src/runtime/events/frame.ts';
import type { ChargedStream, Laggard, StreamBudget } from '#src/runtime/events/stream-budget.ts';
import { charsOf } from '../open/held-chars.ts';
import { pageOutput } from './page-messages.ts';

interface SharedOutput {
  readonly json: SharedJson;
  readonly readers: Set<OutputReader>;
}

/** The stream that a reader writes to, seen from here. */
export interface ReadingStream {
  laggards(): Iterable<Laggard>;
  cutOff(): void;
}

export class SharedOutputs implements ChargedStream {
  readonly #budget: StreamBudget | undefined;
  readonly #shared = new Map<CellOutput, SharedOutput>();
  #isChargeDue = false;

  constructor(budget: StreamBudget | undefined) {
    this.#budget = budget;
  }

  /** The bytes that are kept. */
  get keptBytes(): number {
    let bytes = 0;
    for (const { json } of this.#shared.values()) bytes += json.madeBytes;
    return bytes;
  }

  reader(stream: ReadingStream): OutputReader {
    return new OutputReader(this, stream);
  }

  /** Returns the JSON of an output for a reader; undefined when it is short, or there is no room to keep it. */
  begin(output: CellOutput, reader: OutputReader): SharedJson | undefined {
    const chars = charsOf(output);
    const known = this.#shared.get(output);
    if (known === undefined && (chars <= PIECE_BYTES || this.#budget?.hasRoomFor(chars) === false))
      return undefined;
    const shared = known ?? {
      json: new SharedJson(pageOutput(output), () => this.#chargeSoon()),
      readers: new Set(),
    };
    this.#shared.set(output, shared);
    shared.readers.add(reader);
    return shared.json;
  }

  end(output: CellOutput, reader: OutputReader): void {
    const shared = this.#shared.get(output);
    if (shared?.readers.delete(reader) && shared.readers.size === 0) this.#shared.delete(output);
    this.#chargeSoon();
  }

  /** Yields the streams of readers that lag. Each stream is charged its part of the outputs that it keeps in memory. */
  *laggards(): Generator<Laggard> {
    for (const { json, readers } of this.#shared.values())
      for (const { stream } of readers)
        for (const { behindBytes, ownBytes } of stream.laggards())
          yield {
            behindBytes: behindBytes + json.madeBytes,
            ownBytes: ownBytes + json.madeBytes / readers.size,
            cutOff: () => stream.cutOff(),
          };
  }

  settle(): void {
    this.#budget?.charge(this, this.keptBytes);
  }

  /** Charges at the end of the turn: a stream that is just being written to must not be cut off meanwhile. */
  #chargeSoon(): void {
    if (this.#isChargeDue) return;
    this.#isChargeDue = true;
    queueMicrotask(() => {
      this.#isChargeDue = false;
      this.settle();
    });
  }
}

/** One page that is being sent outputs, one after the other. */
export class OutputReader {
  readonly stream: ReadingStream;
  readonly #outputs: SharedOutputs;
  #output: CellOutput | undefined;
  #isOver = false;

  constructor(outputs: SharedOutputs, stream: ReadingStream) {
    this.#outputs = outputs;
    this.stream = stream;
  }

  /** Returns the form of an output for a page. The page has taken the previous output. */
  read(output: CellOutput): unknown {
    this.#endOutput();
    const json = this.#isOver ? undefined : this.#outputs.begin(output, this);
    if (json !== undefined) this.#output = output;
    return json ?? pageOutput(output);
  }

  /** Called when the page has everything, or has left. Idempotent. */
  end(): void {
    this.#isOver = true;
    this.#endOutput();
  }

  #endOutput(): void {
    if (this.#output === undefined) return;
    this.#outputs.end(this.#output, this);
    this.#output = undefined;
  }
}
