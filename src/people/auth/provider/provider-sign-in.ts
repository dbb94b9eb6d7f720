/** Signing in with the identity provider, from the first step in the browser to the session. */

import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import type { UserId } from '#src/base/ids.ts';
import type { BegunBrowserSignIn, BrowserSignIns } from '../browser-sign-ins.ts';
import type { PageKeys } from '../page-tokens.ts';
import type { SignInAttempt } from './identity-provider.ts';
import type { ProviderContext } from './provider-context.ts';
import { ATTEMPT_S, type KeptAttempt, SignInAttempts } from './sign-in-attempts.ts';

/**
 * How many answers of the provider are checked at once, and how many wait. Both are limited, because strangers can
 * begin attempts and send answers. A client has at most half of the places, and clients that wait take turns.
 */
const PLACES = {
  width: 8,
  widthOfKey: 4,
  queueOfKey: 32,
  queue: 256,
  refusal: 'Too many people are signing in at once. Try again in a moment.',
};

export class ProviderSignIn {
  readonly #parts: ProviderContext;
  readonly #signIns: BrowserSignIns;
  readonly #places = new FairSemaphore(PLACES);
  readonly #attempts: SignInAttempts;

  /** `keys` returns the keys of the server, with which attempts are sealed. */
  constructor(parts: ProviderContext, signIns: BrowserSignIns, keys: (keyId?: string) => PageKeys) {
    this.#parts = parts;
    this.#signIns = signIns;
    this.#attempts = new SignInAttempts(keys);
  }

  get name(): string {
    return this.#parts.provider.name;
  }

  /** How long an attempt to sign in may take, in seconds. */
  readonly attemptS = ATTEMPT_S;

  /**
   * Resolves with the address of the provider's sign-in, and with the sealed attempt for the browser, which opens the page `to`
   * afterwards. Rejects as `IdentityProvider.begin`.
   */
  async begin(redirectUri: string, to: string): Promise<{ readonly url: string; readonly kept: string }> {
    const { url, attempt } = await this.#parts.provider.begin(redirectUri);
    return { url, kept: this.#attempts.seal({ ...attempt, to }) };
  }

  /** Returns the attempt that a browser has kept; undefined when this server has not made it, or its time is over. */
  attemptIn(kept: string): KeptAttempt | undefined {
    return this.#attempts.open(kept);
  }

  /**
   * Resolves with the session of the person whom the provider's answer proves, once the session is on disk. `note` is called in
   * the turn in which the session begins. `client` is the network of the browser: the networks share the places for sign-ins.
   * Rejects with `ProviderFailure`, `AccountRefused` and `unavailable`.
   */
  async complete(
    callback: URL,
    attempt: SignInAttempt,
    client: string,
    note: (userId: UserId, session: BegunBrowserSignIn) => void,
  ): Promise<BegunBrowserSignIn> {
    const { identity, provider, accounts } = this.#parts;
    const signIns = this.#signIns;
    const person = await this.#places.pass(client, () => provider.complete(callback, attempt));
    const begun = await new Promise<BegunBrowserSignIn | Error>((resolve) => {
      identity.store.decide(() => {
        try {
          const userId = accounts.admit(provider.issuer, person);
          const session = signIns.beginForPerson(userId);
          note(userId, session);
          resolve(session);
        } catch (error) {
          resolve(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
    await identity.durable();
    if (begun instanceof Error) throw begun;
    return begun;
  }

  /**
   * Resolves with the address at which a person also signs out at the provider; undefined when the provider offers none, or does
   * not answer.
   */
  async signOutUrl(userId: string, returnTo: string): Promise<string | undefined> {
    const { provider, accounts } = this.#parts;
    if (accounts.read(userId) === undefined) return undefined;
    try {
      return await provider.signOutUrl(accounts.tokensOf(userId).idToken, returnTo);
    } catch {
      return undefined; // the session of this server has ended in any case
    }
  }
}
