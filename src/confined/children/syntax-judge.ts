/**
 * Whether Python code parses, judged by Python in a child of the kernel host: parsing a large notebook takes longer
 * than a server may stand still. The child starts as soon as there is a kernel host, so that a host that hangs later
 * does not prevent saving. Code that crashes the child counts as unparsable. When a kernel host ends, so does its
 * child, and the next host's child is asked again.
 */
import { isShortJson } from '#src/core/json/json-write.ts';
import { atOnce, inSlices, MAX_SIZE_AT_ONCE } from '#src/core/slices.ts';
import type { ChildEnd, ChildStarter, ConfinedChild } from '../confined-child.ts';
import { encodeLongFrame } from '../frame-decoder.ts';
import { asList, asNumber, asRecord } from '../json-shape.ts';
import { bareConfinement, type Confinement } from '../launch-order.ts';

interface Question {
  readonly codes: readonly string[];
  readonly settle: (parses: readonly boolean[]) => void;
  /** The judge ended before it could answer, and will not be asked again. */
  readonly giveUp: () => void;
}

/** How many answers are remembered: notebooks are saved again and again with most cells unchanged. */
const REMEMBERED = 4_096;
const REMEMBERED_LENGTH = 4_096;
const QUESTION = 1;
const CODES_AT_ONCE = 64;
/** How long to wait for a kernel host that is starting. Then the code counts as invalid, and nothing is remembered. */
const PATIENCE_MS = 15_000;

export class SyntaxJudge implements Disposable {
  readonly #host: ChildStarter;
  readonly #known = new Map<string, boolean>();
  readonly #asked = new Map<number, Question>();
  #child: ConfinedChild | undefined;
  #isReady = false;
  #nextId = 0;
  #disposed = false;

  constructor(host: ChildStarter) {
    this.#host = host;
    this.#child = this.#start();
  }

  /** Returns whether every one of `codes` parses; not as a promise when all of them were checked before and are short. */
  allParse(codes: readonly string[]): boolean | Promise<boolean> {
    const steps = this.#findUnknown(codes);
    const conclude = (unknown: readonly string[] | 'broken') => {
      if (unknown === 'broken') return false;
      return unknown.length === 0 ? true : this.#ask(unknown);
    };
    if (isShortJson(codes, MAX_SIZE_AT_ONCE)) return conclude(atOnce(steps));
    return inSlices(steps).then(conclude);
  }

  /**
   * Returns the codes without a remembered answer, in steps of some cells, or `broken` when one is known not to parse.
   */
  *#findUnknown(codes: readonly string[]): Generator<undefined, readonly string[] | 'broken'> {
    const unknown: string[] = [];
    for (const [index, code] of codes.entries()) {
      if (index % CODES_AT_ONCE === 0) yield;
      if (!/\S/.test(code)) continue;
      const known = this.#known.get(code);
      if (known === false) return 'broken';
      if (known === undefined) unknown.push(code);
    }
    return unknown;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#child?.[Symbol.dispose]();
    this.#giveUpAll();
  }

  #ask(codes: readonly string[]): Promise<boolean> {
    return new Promise((resolve) => {
      if (this.#disposed) return resolve(false);
      const id = this.#nextId++;
      const conclude = (answer: boolean) => {
        clearTimeout(patience);
        this.#asked.delete(id);
        resolve(answer);
      };
      const patience = setTimeout(() => conclude(false), PATIENCE_MS);
      const settle = (parses: readonly boolean[]) => {
        for (const [index, code] of codes.entries()) this.#remember(code, parses[index] === true);
        conclude(codes.every((_, index) => parses[index] === true));
      };
      this.#asked.set(id, { codes, settle, giveUp: () => conclude(false) });
      this.#child ??= this.#start();
      if (this.#isReady) this.#send(id, codes);
    });
  }

  #send(id: number, codes: readonly string[]): void {
    this.#child?.sender.send(encodeLongFrame(QUESTION, { id, codes }));
  }

  #remember(code: string, parses: boolean): void {
    if (code.length > REMEMBERED_LENGTH) return;
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    this.#known.set(code, parses);
  }

  #start(): ConfinedChild {
    this.#isReady = false;
    const request = (confinement: Confinement | null) => ({
      order: { op: 'syntax', confine: bareConfinement(confinement) },
      launch: {},
    });
    return this.#host.startChild(request, {
      received: (values) => {
        for (const value of values) this.#receive(asRecord(value, 'the message'));
      },
      ended: (end) => this.#onEnded(end),
    });
  }

  #receive(message: Readonly<Record<string, unknown>>): void {
    if (message.op === 'syntax-ready') {
      this.#isReady = true;
      for (const [id, { codes }] of this.#asked) this.#send(id, codes);
    } else if (message.op === 'parsed') {
      const question = this.#asked.get(asNumber(message.id, 'id'));
      question?.settle(asList(message.parses, (one) => one === true, 'parses'));
    }
  }

  #onEnded(end: ChildEnd): void {
    const wasReady = this.#isReady;
    this.#child = undefined;
    this.#isReady = false;
    if (end.kind === 'unavailable') {
      this.#giveUpAll();
      return;
    }
    // A judge that was at work died of the first question. One that did not start may do so for lack of memory or
    // processes: to give up one question each time ends the attempts.
    const [first] = end.kind === 'lost' ? [] : this.#asked.values();
    if (wasReady) first?.settle(first.codes.map(() => false));
    else first?.giveUp();
    if (this.#asked.size > 0 || end.kind === 'lost') this.#child = this.#start();
  }

  #giveUpAll(): void {
    for (const { giveUp } of [...this.#asked.values()]) giveUp();
  }
}
