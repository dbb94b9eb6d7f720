/** Complaints about answers that no user has to expect. */
import type { World } from '../world/world.ts';
import { isAnswer, type Outcome } from './client.ts';

/** Answers to a run, a prompt, an edit or a cancellation that a user in a hurry has to expect. */
const EXPECTED = new Set([202, 404, 409, 429]);

export class Complaints {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** `request` names the request. */
  requireExpected(request: string, outcome: Outcome): void {
    if (isAnswer(outcome) && !EXPECTED.has(outcome.status)) this.complain(request, outcome);
  }

  requireSound(request: string, outcome: Outcome): void {
    if (isAnswer(outcome) && outcome.status >= 500) this.complain(request, outcome);
  }

  complain(request: string, outcome: Outcome): void {
    this.#world.problem(`${request} was answered with ${shownOf(outcome)}`);
  }
}

export function shownOf(outcome: Outcome): string {
  return typeof outcome === 'string' ? outcome : `${outcome.status} ${outcome.text}`;
}
