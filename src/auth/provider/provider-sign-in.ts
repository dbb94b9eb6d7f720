/** Signing in with the identity provider, from the first step in the browser to the session. */

import type { UserId } from '#src/core/ids.ts';
import { Semaphore } from '#src/core/semaphore.ts';
import type { BegunSession, BrowserSessions } from '../browser-sessions.ts';
import type { Identity } from '../identity.ts';
import type { IdentityProvider, SignInAttempt } from './identity-provider.ts';
import type { ProviderAccounts } from './provider-accounts.ts';

export interface ProviderSignInOptions {
  readonly identity: Identity;
  readonly provider: IdentityProvider;
  readonly accounts: ProviderAccounts;
  readonly sessions: BrowserSessions;
}

/** How many answers of the provider are checked at once, and how many wait: strangers can send them. */
const WIDTH = 8;
const QUEUE = 64;

export class ProviderSignIn {
  readonly #options: ProviderSignInOptions;
  readonly #semaphore = new Semaphore(WIDTH, QUEUE);

  constructor(options: ProviderSignInOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.provider.name;
  }

  /** See `IdentityProvider.begin`. */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly attempt: SignInAttempt }> {
    return this.#options.provider.begin(redirectUri);
  }

  /**
   * Resolves with the session of the person whom the provider's answer proves, once it is on disk. `note` is called in the turn in
   * which the session begins. Rejects with `ProviderFailure` and `AccountRefused`.
   */
  async complete(
    callback: URL,
    attempt: SignInAttempt,
    note: (userId: UserId, session: BegunSession) => void,
  ): Promise<BegunSession> {
    const { identity, provider, accounts, sessions } = this.#options;
    const person = await this.#semaphore.pass(() => provider.complete(callback, attempt));
    const begun = await new Promise<BegunSession | Error>((resolve) => {
      identity.store.decide(() => {
        try {
          const userId = accounts.admit(provider.issuer, person);
          const session = sessions.beginForPerson(userId);
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
    const { provider, accounts } = this.#options;
    if (accounts.read(userId) === undefined) return undefined;
    try {
      return await provider.signOutUrl(accounts.tokensOf(userId).idToken, returnTo);
    } catch {
      return undefined; // here the person is signed out in any case
    }
  }
}
