import type { Principal } from '#src/base/caller/principal.ts';

/** A caller whose token was looked up. */
export interface KnownCaller {
  readonly principal: Principal;
  readonly expiresAtMs: number;
  /** Whether the token is a session of a browser or a command line. */
  readonly isSession: boolean;
}

/**
 * Callers by the digest or the id of their token, and then by their workspace. With one joined key, each request would make a new string and
 * hash it, which takes longer than two look-ups.
 */
export class CallerCache {
  readonly #byToken = new Map<string, Map<string, KnownCaller>>();
  readonly #limit: number;
  #size = 0;

  /** `limit` is the most callers that are kept; those of the oldest token are dropped first. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  find(digest: string, workspaceId: string): KnownCaller | undefined {
    return this.#byToken.get(digest)?.get(workspaceId);
  }

  keep(digest: string, workspaceId: string, caller: KnownCaller): void {
    this.forget(digest, workspaceId);
    if (this.#size >= this.#limit) this.#dropOldest();
    const callers = this.#byToken.get(digest) ?? new Map<string, KnownCaller>();
    this.#byToken.set(digest, callers.set(workspaceId, caller));
    this.#size++;
  }

  forget(digest: string, workspaceId: string): void {
    const callers = this.#byToken.get(digest);
    if (callers?.delete(workspaceId) !== true) return;
    this.#size--;
    if (callers.size === 0) this.#byToken.delete(digest);
  }

  clear(): void {
    this.#byToken.clear();
    this.#size = 0;
  }

  #dropOldest(): void {
    for (const [digest, callers] of this.#byToken) {
      this.#byToken.delete(digest);
      this.#size -= callers.size;
      return;
    }
  }
}
