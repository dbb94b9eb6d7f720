/**
 * Asks the identity provider regularly about everybody who has signed in with it. So people whom the provider has
 * removed, from a group or altogether, lose their access here within a minute. One worker of a server does this.
 */
import { unawaited } from '#src/base/async/unawaited.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import { PersonGone, ProviderFailure } from './identity-provider.ts';
import type { ProviderAccounts } from './provider-accounts.ts';
import type { ProviderContext } from './provider-context.ts';

/** How many people are asked about at once. */
const WIDTH = 4;

type ChecksContext = Pick<PlaneContext, 'config' | 'cluster' | 'log'>;

export class ProviderChecks implements Disposable {
  readonly #parts: ProviderContext;
  readonly #context: ChecksContext;
  readonly #timer: NodeJS.Timeout;
  #isAtWork = false;
  /** Whether the provider failed to answer about somebody in the last round. */
  #isAway = false;
  #isOver = false;
  /** Until then the provider is asked nothing, because it had too many requests. */
  #pausedUntilMs = 0;

  constructor(parts: ProviderContext, context: ChecksContext) {
    this.#parts = parts;
    this.#context = context;
    this.#timer = setInterval(
      () => unawaited(this.check(), 'provider-checks: the check'),
      Math.min(this.#everyMs / 3, 10_000),
    );
    this.#timer.unref();
  }

  /** Asks about all people whose check is due, beginning with those whose last check is oldest. Never rejects. */
  async check(): Promise<void> {
    const { identity, accounts } = this.#parts;
    if (this.#isAtWork || this.#isOver || this.#isPaused() || !this.#context.cluster.owns(SYSTEM)) return;
    const everyMs = this.#everyMs;
    this.#isAtWork = true;
    try {
      identity.store.refresh();
      // A provider may answer about only some people before it has too many requests. So the order must change, or
      // the same people would never be checked.
      const due = [...accounts.active()]
        .filter(({ account }) => account.checkedAtMs + everyMs <= identity.nowMs())
        .sort((one, other) => other.account.checkedAtMs - one.account.checkedAtMs);
      if (due.length === 0) return;
      const failures: ProviderFailure[] = [];
      const failed = (error: unknown) => {
        if (!(error instanceof ProviderFailure)) return this.#report(error);
        failures.push(error);
        if (error.pauseMs !== undefined) this.#pausedUntilMs = identity.nowMs() + error.pauseMs;
      };
      const next = async () => {
        while (!this.#isOver && !this.#isPaused()) {
          const one = due.pop();
          if (one === undefined) return;
          await this.#ask(one.userId).catch(failed);
        }
      };
      await Promise.all(Array.from({ length: WIDTH }, next));
      if (failures[0] !== undefined && !this.#isAway) this.#report(failures[0]);
      this.#isAway = failures.length > 0;
    } catch (error) {
      this.#report(error);
    } finally {
      this.#isAtWork = false;
    }
  }

  /** A person is asked about this long after the last time. */
  get #everyMs(): number {
    return this.#context.config.oidcCheckS * 1000;
  }

  /** A provider that does not answer is reported once, until it answers about everybody again. */
  #report(error: unknown): void {
    this.#context.log.warn({ err: error }, 'the identity provider could not be asked about a person');
  }

  #isPaused(): boolean {
    return this.#parts.identity.nowMs() < this.#pausedUntilMs;
  }

  async #ask(userId: Parameters<ProviderAccounts['drop']>[0]): Promise<void> {
    const { identity, provider, accounts } = this.#parts;
    const account = accounts.read(userId);
    if (account === undefined) return;
    const { refreshToken } = accounts.tokensOf(userId);
    const wasActive = () => accounts.read(userId)?.isActive === true;
    try {
      const person = await provider.renew(account.subject, refreshToken);
      identity.store.decide(() => accounts.renew(userId, person));
    } catch (error) {
      const renewed = error instanceof ProviderFailure ? error.renewed : undefined;
      if (renewed !== undefined)
        identity.store.decide(() => accounts.replaceToken(userId, refreshToken, renewed));
      if (!(error instanceof PersonGone)) throw error;
      // The person may have signed in again in the meantime, and the account then has another token.
      if (accounts.tokensOf(userId).refreshToken.reveal() !== refreshToken.reveal()) return;
      identity.store.decide(() => accounts.drop(userId));
    }
    await identity.durable();
    if (!wasActive()) this.#context.log.info({ userId }, 'a person is gone at the identity provider');
  }

  [Symbol.dispose](): void {
    this.#isOver = true;
    clearInterval(this.#timer);
  }
}
