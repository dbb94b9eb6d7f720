/**
 * Whether Python code parses, judged by Python in a process of its own: parsing a large notebook takes longer than a
 * server may stand still. The process is started with the first question; what it dies of does not parse.
 */
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { hostEnvironment } from './environment.ts';
import { asList, asRecord } from './json-shape.ts';

export interface SyntaxJudgeOptions {
  readonly python: string;
  /** The path of syntax.py. */
  readonly script: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

type Child = ChildProcessByStdio<Writable, Readable, null>;

interface Question {
  readonly codes: readonly string[];
  readonly settle: (parses: readonly boolean[]) => void;
}

/** Answers that are remembered: notebooks are saved again and again with most cells unchanged. */
const REMEMBERED = 4_096;
const REMEMBERED_LENGTH = 4_096;

export class SyntaxJudge implements Disposable {
  readonly #options: SyntaxJudgeOptions;
  readonly #known = new Map<string, boolean>();
  readonly #asked = new Map<number, Question>();
  #child: Child | undefined;
  #nextId = 0;
  #disposed = false;

  constructor(options: SyntaxJudgeOptions) {
    this.#options = options;
  }

  /** Whether every one of `codes` parses; at once when all of them were judged before. */
  allParse(codes: readonly string[]): boolean | Promise<boolean> {
    const unknown: string[] = [];
    for (const code of codes) {
      if (code.trim() === '') continue;
      const known = this.#known.get(code);
      if (known === false) return false;
      if (known === undefined) unknown.push(code);
    }
    return unknown.length === 0 ? true : this.#ask(unknown);
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#child?.kill('SIGKILL');
    for (const question of this.#asked.values()) refuse(question);
    this.#asked.clear();
  }

  #ask(codes: readonly string[]): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (parses: readonly boolean[]): void => {
        for (const [index, code] of codes.entries()) this.#remember(code, parses[index] === true);
        resolve(codes.every((_, index) => parses[index] === true));
      };
      this.#send({ codes, settle });
    });
  }

  #send(question: Question): void {
    if (this.#disposed) {
      refuse(question);
      return;
    }
    const id = this.#nextId++;
    this.#asked.set(id, question);
    this.#child ??= this.#start();
    this.#child.stdin.write(`${JSON.stringify({ id, codes: question.codes })}\n`);
  }

  #remember(code: string, parses: boolean): void {
    if (code.length > REMEMBERED_LENGTH) return;
    if (this.#known.size >= REMEMBERED) this.#known.clear();
    this.#known.set(code, parses);
  }

  #start(): Child {
    const { python, script, environment } = this.#options;
    const child = spawn(python, ['-I', '-S', script], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: hostEnvironment(environment, false),
    });
    createInterface({ input: child.stdout }).on('line', (line) => this.#answer(line));
    child.stdin.on('error', () => undefined); // its end is told by `close`, with every question answered
    child.once('error', () => this.#lost(child));
    child.once('close', () => this.#lost(child));
    child.unref();
    return child;
  }

  #answer(line: string): void {
    const { id, parses } = asRecord(JSON.parse(line), 'the answer');
    const question = typeof id === 'number' ? this.#asked.get(id) : undefined;
    if (question === undefined) return;
    this.#asked.delete(id as number);
    question.settle(asList(parses, (one) => one === true, 'parses'));
  }

  /** The first open question is what ended it; the others are asked again. */
  #lost(child: Child): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    const [first, ...others] = this.#asked.values();
    this.#asked.clear();
    if (first !== undefined) refuse(first);
    for (const question of others) this.#send(question);
  }
}

function refuse({ codes, settle }: Question): void {
  settle(codes.map(() => false));
}
