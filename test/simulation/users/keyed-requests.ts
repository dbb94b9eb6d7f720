/** Requests with an idempotency key, which a user sends again until there is an answer, and now and then twice at once. */
import type { SeededRandom } from '#test/support/random.ts';
import type { World } from '../world/world.ts';
import { isAnswer, type Outcome, type SimulatedClient } from './client.ts';
import type { Complaints } from './complaints.ts';

const PATIENT_ATTEMPTS = 200;
/** Options of a request that is sent with a key. */
interface PostOptions {
  readonly query?: string | undefined;
  readonly leavesAfterMs?: number | undefined;
}
/** The refusal of a request whose key is in use. */
export const IN_PROGRESS = 'idempotency_in_progress';

interface KeyedRequestsOptions {
  readonly world: World;
  readonly client: SimulatedClient;
  readonly random: SeededRandom;
  readonly complaints: Complaints;
}

export class KeyedRequests {
  readonly #world: World;
  readonly #client: SimulatedClient;
  readonly #random: SeededRandom;
  readonly #complaints: Complaints;

  constructor({ world, client, random, complaints }: KeyedRequestsOptions) {
    this.#world = world;
    this.#client = client;
    this.#random = random;
    this.#complaints = complaints;
  }

  /** Creates something once, however often the request has to be sent. Returns a member of the answer. */
  async created(path: string, body: object, member: string, key: string): Promise<string | undefined> {
    for (let attempt = 0; attempt < PATIENT_ATTEMPTS; attempt++) {
      const answer = await this.postTwice(path, body, key);
      if (isAnswer(answer) && answer.status === 201) return String(answer.json[member]);
      if (isAnswer(answer)) {
        this.#complaints.complain('the creation', answer);
        return undefined;
      }
      await this.pause();
    }
    return undefined;
  }

  /**
   * Sends a request with a key, now and then twice at once, as a client does that gives up too early. Both name one thing, and none
   * is refused because of what the other one has begun.
   */
  async postTwice(path: string, body: object, key: string, more: PostOptions = {}): Promise<Outcome> {
    if (!this.#random.is(0.15)) return this.#client.post(path, body, { key, ...more });
    const { query } = more;
    const first = this.#client.post(path, body, { key, query });
    await this.#world.sleep(this.#random.next() * 3);
    const answers = await Promise.all([first, this.#client.post(path, body, { key, query })]);
    const told = answers.filter(isAnswer);
    const made = told.find(({ status }) => status < 300);
    for (const { status, json, text } of made === undefined ? [] : told) {
      const { runId } = (json.busyWith ?? {}) as { runId?: string };
      if (status < 300 ? json.id !== made!.json.id : runId !== undefined && runId === made!.json.runId)
        this.#world.problem(`the key ${key} was answered with ${made!.text} and with ${text}`);
    }
    if (made === undefined && told.length < answers.length) return 'unknown'; // one of them may still be carried out
    return made ?? told.find(({ json }) => json.code !== IN_PROGRESS) ?? 'unknown';
  }

  /** Resolves after a time that a client waits before it sends a request again. */
  pause(): Promise<void> {
    return this.#world.sleep(20 + this.#random.next() * 300);
  }
}
