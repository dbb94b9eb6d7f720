/**
 * A program elsewhere that fires a job by a hook, again and again with ids of its own, and repeats ids: at once when it got no answer, and
 * later, also after a crash of the server. Requests with one id are one firing.
 */
import type { SeededRandom } from '#test/support/random.ts';
import type { ShownOccurrence } from '../judges/jobs.ts';
import { type World, world } from '../world/world.ts';
import { isAnswer, type SimulatedClient } from './client.ts';
import type { Complaints } from './complaints.ts';

/** An occurrence that a hook has fired. */
export interface FiredOccurrence extends ShownOccurrence {
  readonly arguments?: readonly string[];
}

/** A request with its id, and the occurrence with which it was answered. */
interface Firing {
  readonly id: string;
  /** The job may have given it an occurrence. */
  occurrenceId: string | undefined;
}

const MAX_REPEATS = 40;
const PAUSE_MS = 150;

export class OutsideProgram {
  readonly #world: World = world();
  readonly #client: SimulatedClient;
  readonly #random: SeededRandom;
  readonly #complaints: Complaints;
  readonly #name: string;
  readonly #jobId: string;
  #path: string | undefined;
  #program: SimulatedClient | undefined;
  readonly #firings: Firing[] = [];
  /** The firings of the present hook, whose ids the server remembers. */
  #ofHook: Firing[] = [];
  #count = 0;

  constructor(
    client: SimulatedClient,
    random: SeededRandom,
    complaints: Complaints,
    name: string,
    jobId: string,
  ) {
    this.#client = client;
    this.#random = random;
    this.#complaints = complaints;
    this.#name = name;
    this.#jobId = jobId;
  }

  async act(): Promise<void> {
    if (this.#path === undefined) return this.#begin();
    if (this.#random.is(0.03)) return this.#end();
    const again = this.#ofHook.length > 0 && this.#random.is(0.4);
    await this.#fire(again ? this.#random.pick(this.#ofHook.slice(-8)) : this.#newFiring());
  }

  /** Right after a start: the last id that was answered is still known. */
  async inspect(): Promise<void> {
    const known = this.#ofHook.filter(({ occurrenceId }) => occurrenceId !== undefined).at(-1);
    if (known !== undefined && this.#path !== undefined) await this.#fire(known);
  }

  async #begin(): Promise<void> {
    const made = await this.#client.post(`/api/v3/jobs/${this.#jobId}/hooks-in`, {});
    if (!isAnswer(made)) return;
    if (made.status === 422 || made.status === 429) return; // those whose answers were lost count, too
    if (made.status !== 201) return this.#complaints.complain('the creation of a hook of a job', made);
    this.#path = String(made.json.url);
    this.#program = this.#client.as(String(made.json.secret));
    this.#ofHook = [];
  }

  async #end(): Promise<void> {
    const id = this.#path!.split('/').at(-1)!;
    const gone = await this.#client.ask('DELETE', `/api/v3/jobs/${this.#jobId}/hooks-in/${id}`);
    const path = this.#path!;
    this.#path = undefined;
    if (!isAnswer(gone)) return;
    if (gone.status !== 204) return this.#complaints.complain('the deletion of a hook of a job', gone);
    const late = await this.#program!.post(path, {}, { headers: { 'webhook-id': 'late' } });
    if (isAnswer(late) && late.status !== 401 && late.status !== 429)
      this.#complaints.complain('a firing by a hook that was deleted', late);
  }

  #newFiring(): Firing {
    const firing = { id: `${this.#name}w${++this.#count}`, occurrenceId: undefined };
    this.#firings.push(firing);
    this.#ofHook.push(firing);
    return firing;
  }

  async #fire(firing: Firing): Promise<void> {
    const repeats = this.#random.is(0.7) ? MAX_REPEATS : 1;
    const first = this.#send(firing);
    // Now and then a client sends the request again before it has an answer.
    if (this.#random.is(0.1)) await Promise.all([first, this.#send(firing)]);
    let isAnswered = await first;
    for (let at = 1; at < repeats && !isAnswered; at++) {
      await this.#world.sleep(this.#random.next() * PAUSE_MS);
      isAnswered = await this.#send(firing);
    }
  }

  /** Resolves with whether there was an answer. */
  async #send(firing: Firing): Promise<boolean> {
    const { id } = firing;
    const header = Number(id.slice(-1)) % 3 === 0 ? 'idempotency-key' : 'webhook-id';
    const answer = await this.#program!.post(this.#path!, { id }, { headers: { [header]: id } });
    if (!isAnswer(answer)) return false;
    if (answer.status === 202) {
      const occurrenceId = String(answer.json.id);
      this.#world.count('firings by hooks');
      if (firing.occurrenceId !== undefined && firing.occurrenceId !== occurrenceId)
        this.#world.problem(`the request ${id} has fired ${firing.occurrenceId} and ${occurrenceId}`);
      firing.occurrenceId = occurrenceId;
    } else if (firing.occurrenceId !== undefined && answer.status !== 429)
      this.#complaints.complain(`the request ${id}, which has fired ${firing.occurrenceId},`, answer);
    else if (answer.json.code !== 'job_running' && answer.status !== 429)
      this.#complaints.complain('a firing by a hook', answer);
    return true;
  }

  /** Judges all occurrences of the job at the end: each id has at most one, and each that was answered has it. */
  judge(all: readonly FiredOccurrence[]): void {
    const byArgument = new Map<string, string[]>();
    for (const { id, trigger, arguments: [argument = ''] = [] } of all)
      if (trigger === 'hook') byArgument.set(argument, [...(byArgument.get(argument) ?? []), id]);
    for (const { id, occurrenceId } of this.#firings) {
      const found = byArgument.get(`--payload=${JSON.stringify({ id })}`) ?? [];
      if (found.length > 1)
        this.#world.problem(`the request ${id} has the occurrences ${found.join(' and ')}`);
      if (occurrenceId !== undefined && !found.includes(occurrenceId))
        this.#world.problem(
          `the request ${id} has fired ${occurrenceId}, and there is ${found.join() || 'none'}`,
        );
    }
  }
}
