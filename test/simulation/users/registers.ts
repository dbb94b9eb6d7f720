/** Registers: notebooks without cells whose title several users read and write, so that a judge can say whether they are linearizable. */

import type { SeededRandom } from '#test/support/random.ts';
import type { Ledger } from '../judges/ledger.ts';
import type { World } from '../world/world.ts';
import { isAnswer, type Outcome, type SimulatedClient } from './client.ts';
import type { Complaints } from './complaints.ts';

const FIRST_TITLE = 'first';
export const NEW_REGISTER = { app: { options: { app_title: FIRST_TITLE } }, cells: [] };

interface RegistersOptions {
  readonly world: World;
  readonly client: SimulatedClient;
  readonly ledger: Ledger;
  readonly random: SeededRandom;
  readonly complaints: Complaints;
  /** Returns a title that nobody has written yet. */
  readonly newToken: () => string;
}

export class Registers {
  readonly #world: World;
  readonly #client: SimulatedClient;
  readonly #ledger: Ledger;
  readonly #random: SeededRandom;
  readonly #complaints: Complaints;
  readonly #newToken: () => string;

  constructor({ world, client, ledger, random, complaints, newToken }: RegistersOptions) {
    this.#world = world;
    this.#client = client;
    this.#ledger = ledger;
    this.#random = random;
    this.#complaints = complaints;
    this.#newToken = newToken;
  }

  /** Writes a register, on condition that nobody has written it since it was read. */
  async write(register: string): Promise<void> {
    const path = `/api/v3/notebooks/${register}`;
    const readFromMs = this.#world.nowMs;
    const read = await this.#client.get(path);
    if (!isAnswer(read) || read.status !== 200) return;
    const expected = String(read.json.updatedAt);
    const title = titleOf(read.json);
    const readSpan = { from: readFromMs, to: this.#world.nowMs };
    if (title !== FIRST_TITLE)
      this.#ledger.history.push({
        kind: 'register-read',
        register,
        version: expected,
        token: title,
        ...readSpan,
      });
    const acts = [this.#replace(register, expected)];
    if (this.#random.is(0.2)) acts.push(this.#replace(register, expected)); // only one of them may succeed
    if (this.#random.is(0.4)) acts.push(this.#readRegister(register), this.#readRegister(register));
    await Promise.all(acts);
  }

  async #replace(register: string, expected: string): Promise<void> {
    const token = this.#newToken();
    const fromMs = this.#world.nowMs;
    const serialization = { app: { options: { app_title: token } }, cells: [] };
    const outcome = await this.#client.ask('PATCH', `/api/v3/notebooks/${register}`, {
      body: { expectedUpdatedAt: expected, serialization },
    });
    if (outcome === 'refused') return;
    const answer = writeAnswer(outcome);
    if (answer === undefined) return this.#complaints.complain('a write', outcome);
    const span = { from: fromMs, to: this.#world.nowMs };
    this.#ledger.history.push({ kind: 'register-write', register, expected, token, answer, ...span });
  }

  /** Reads a register soon, while a write of it is under way. */
  async #readRegister(register: string): Promise<void> {
    await this.#world.sleep(this.#random.next() * 5);
    const fromMs = this.#world.nowMs;
    const read = await this.#client.get(`/api/v3/notebooks/${register}`);
    if (!isAnswer(read) || read.status !== 200 || titleOf(read.json) === FIRST_TITLE) return;
    this.#ledger.history.push({
      kind: 'register-read',
      register,
      version: String(read.json.updatedAt),
      token: titleOf(read.json),
      from: fromMs,
      to: this.#world.nowMs,
    });
  }
}

function titleOf(json: Readonly<Record<string, unknown>>): string {
  const { serialization } = json as { serialization: { app: { options: { app_title: string } } } };
  return serialization.app.options.app_title;
}

function writeAnswer(outcome: Outcome): { readonly version: string } | 'conflict' | 'unknown' | undefined {
  if (!isAnswer(outcome)) return 'unknown';
  if (outcome.status === 409) return 'conflict';
  return outcome.status === 200 ? { version: String(outcome.json.updatedAt) } : undefined;
}
