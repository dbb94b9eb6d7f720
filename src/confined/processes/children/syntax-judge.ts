/**
 * Checks whether Python code parses. Python does this in children of the kernel host, because
 * parsing a large notebook would stop the server for too long.
 *
 * One child judges short code for all workspaces. It starts as soon as there is a kernel host, so
 * that a host that hangs later does not prevent saving. It gets one question at a time, workspaces
 * take turns, and a question has a second of processor time, so nobody waits long for others. Long
 * code goes to a child of its own that counts towards its workspace. Code that crashes a child
 * counts as unparsable. When a kernel host ends, its child ends too, and later questions go to a
 * child of the next host.
 */
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { atOnce, inSlices, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { isShortJson } from '#src/base/json/json-write.ts';
import type { ChildEnd, ChildStarter, ConfinedChild } from '../confined-child.ts';
import { encodeLongFrame } from '../frame-decoder.ts';
import { asList, asNumber, asRecord } from '../json-shape.ts';
import { bareConfinement, type ChildRequest, type Confinement } from '../launch-order.ts';
import type { KernelLimits } from '../limits.ts';
import { workspaceCharge } from '../workspace-charge.ts';
import { askOnce } from './one-question.ts';

interface Question {
  readonly codes: readonly string[];
  readonly settle: (parses: readonly boolean[]) => void;
  /** Called when there was no answer and there will be no further attempt. */
  readonly giveUp: () => void;
}

/** Judges long code in a process of the workspace. Resolves with null when it failed. */
export type CheckLongCode = (
  codes: readonly string[],
  workspaceId: string,
) => Promise<readonly boolean[] | null>;

/**
 * How many answers are remembered. Notebooks are saved again and again with most cells unchanged.
 */
const REMEMBERED = 4_096;
const REMEMBERED_LENGTH = 4_096;
const QUESTION = 1;
const CODES_AT_ONCE = 64;
/** How long to wait for a kernel host that is starting. Then the code counts as invalid, and nothing is remembered. */
const PATIENCE_MS = 15_000;
/** Longer code, counted over all cells together, goes to a process of its workspace. */
export const MAX_SHARED_CHARS = 64 * 1024;
const SHARED_CPU_S = 1;
/** How many short questions of one workspace may wait. */
const MAX_WAITING = 1024;
const LONG_CPU_S = 5;
const LONG_TIMEOUT_MS = 30_000;

export class SyntaxJudge implements Disposable {
  readonly #host: ChildStarter;
  readonly #checkLongCode: CheckLongCode;
  readonly #turns = new FairSemaphore({ width: 1, widthOfKey: 1, queueOfKey: MAX_WAITING });
  readonly #known = new Map<string, boolean>();
  readonly #asked = new Map<number, Question>();
  #child: ConfinedChild | undefined;
  #isReady = false;
  #nextId = 0;
  #disposed = false;

  constructor(host: ChildStarter, checkLongCode: CheckLongCode) {
    this.#host = host;
    this.#checkLongCode = checkLongCode;
    this.#child = this.#start();
  }

  /**
   * Returns whether all of `codes` parse. Returns no promise when all were checked before and are
   * short. Rejects with `unavailable` when too many questions of the workspace wait.
   */
  allParse(codes: readonly string[], workspaceId: string): boolean | Promise<boolean> {
    const steps = this.#findUnknown(codes);
    const conclude = (unknown: readonly string[] | 'broken') => {
      if (unknown === 'broken') return false;
      return unknown.length === 0 ? true : this.#judge(unknown, workspaceId);
    };
    if (isShortJson(codes, MAX_SIZE_AT_ONCE)) return conclude(atOnce(steps));
    return inSlices(steps, workspaceId).then(conclude);
  }

  /**
   * Returns the codes without a remembered answer, in steps of some cells, or `broken` when a code is known not to parse.
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

  async #judge(codes: readonly string[], workspaceId: string): Promise<boolean> {
    const chars = codes.reduce((sum, { length }) => sum + length, 0);
    const parses =
      chars > MAX_SHARED_CHARS
        ? await this.#checkLongCode(codes, workspaceId)
        : await this.#turns.pass(workspaceId, () => this.#ask(codes));
    if (parses === null) return false;
    for (const [index, code] of codes.entries()) this.#remember(code, parses[index] === true);
    return codes.every((_, index) => parses[index] === true);
  }

  /** Resolves with null when there is no answer. */
  #ask(codes: readonly string[]): Promise<readonly boolean[] | null> {
    return new Promise((resolve) => {
      if (this.#disposed) return resolve(null);
      const id = this.#nextId++;
      const settle = (parses: readonly boolean[] | null) => {
        clearTimeout(patience);
        this.#asked.delete(id);
        resolve(parses);
      };
      const patience = setTimeout(() => settle(null), PATIENCE_MS);
      this.#asked.set(id, { codes, settle, giveUp: () => settle(null) });
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
      launch: { seconds: SHARED_CPU_S },
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
      question?.settle(decodeParsed(message));
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
    // If the judge ended while it worked, the first question ended it. If it did not start, the
    // cause may be a lack of memory or processes. Giving up one question each time limits the
    // attempts.
    const [first] = end.kind === 'lost' ? [] : this.#asked.values();
    // When there are several codes, it is unknown which one was the cause.
    if (wasReady && first?.codes.length === 1) first.settle([false]);
    else first?.giveUp();
    if (this.#asked.size > 0 || end.kind === 'lost') this.#child = this.#start();
  }

  #giveUpAll(): void {
    for (const { giveUp } of [...this.#asked.values()]) giveUp();
  }
}

/**
 * Resolves with which of `codes` parse. A child checks them that counts towards the workspace with
 * this folder of files, and that has then ended. Resolves with null when the child crashed, took
 * too long or could not start.
 */
export function checkSyntaxInChild(
  codes: readonly string[],
  filesDirectory: string,
  limits: KernelLimits,
  host: ChildStarter,
): Promise<readonly boolean[] | null> {
  const question = {
    request: (confinement: Confinement | null): ChildRequest => ({
      order: {
        op: 'syntax',
        ...workspaceCharge(filesDirectory, limits),
        confine: bareConfinement(confinement),
      },
      launch: { seconds: LONG_CPU_S },
    }),
    question: { id: 0, codes },
    readyOp: 'syntax-ready',
    answerOp: 'parsed',
    timeoutMs: LONG_TIMEOUT_MS,
  };
  return askOnce(host, question, (end) => (end.kind === 'answered' ? decodeParsed(end.message) : null));
}

function decodeParsed({ parses }: Readonly<Record<string, unknown>>): readonly boolean[] {
  return asList(parses, (one) => one === true, 'parses');
}
