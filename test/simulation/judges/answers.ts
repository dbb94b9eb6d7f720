/**
 * The texts of answers. A text in a conversation, or one that a subscriber has joined from pieces, must be a beginning of the model's
 * answer to its prompt, however often the model was asked.
 */
import { answerTo, promptIn } from '../users/prompt-text.ts';
import type { World } from '../world/world.ts';

interface Content {
  readonly type: string;
  readonly text?: string;
}

export interface ShownEntry {
  readonly id: string;
  readonly role: string;
  readonly runId: string | null;
  readonly content: readonly Content[];
}

/** An event of a conversation, as far as it is about answers. */
export interface AnswerEvent {
  readonly type: string;
  readonly runId?: string;
  readonly resumed?: boolean;
  readonly missed?: boolean;
  readonly data: Readonly<Record<string, unknown>>;
}

/** Judges the answers that one reader of a conversation gets. */
export class AnswerJudge {
  readonly #world: World;
  readonly #reader: string;
  /** The answer of the model to the prompt of a run. */
  readonly #answers = new Map<string, string>();
  /** The texts so far, by the ids of entries. */
  readonly #texts = new Map<string, string>();
  /** Pieces that were received, because a subscriber that comes back may get one again. */
  readonly #pieces = new Set<string>();
  /** Whether the opening of a connection goes on where the last one was cut. */
  #isResumed = false;

  constructor(world: World, reader: string) {
    this.#world = world;
    this.#reader = reader;
  }

  /** Takes an entry of the conversation. */
  takeEntry({ role, runId, content }: ShownEntry): void {
    if (runId === null) return;
    const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('');
    if (role === 'user') {
      const prompt = promptIn(text);
      if (prompt !== undefined) this.#answers.set(runId, answerTo(prompt));
    } else if (role === 'assistant') this.#require(runId, text);
  }

  /** Takes an event; `isLive` says whether the opening of its connection is over. */
  takeEvent(id: string, event: AnswerEvent, isLive: boolean): void {
    if (event.type === 'session.snapshot') {
      this.#isResumed = event.resumed === true;
      if (!this.#isResumed) {
        this.#texts.clear();
        this.#pieces.clear(); // the events of two equal states have the same ids
      }
    }
    if (!isLive && this.#isResumed && event.missed !== true) return; // the state, which this reader has
    if (event.type === 'agent-entry') this.takeEntry(event.data as unknown as ShownEntry);
    if (event.type !== 'text-delta' || event.runId === undefined || this.#pieces.has(id)) return;
    this.#pieces.add(id);
    const { entryId, text } = event.data as { entryId: string; text: string };
    const whole = `${this.#texts.get(entryId) ?? ''}${text}`;
    this.#texts.set(entryId, whole);
    this.#require(event.runId, whole);
  }

  #require(runId: string, text: string): void {
    const answer = this.#answers.get(runId);
    if (answer !== undefined && !answer.startsWith(text))
      this.#world.problem(
        `${this.#reader} got the answer ${text} to the prompt of the run ${runId}, and its model says ${answer}`,
      );
  }
}
