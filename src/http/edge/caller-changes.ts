/**
 * What has become of the rights of callers since their requests were admitted. A body may take long to come, and so may the turn
 * of a request: whoever has lost a right meanwhile must not use it any more.
 */
import type { AppError } from '#src/core/errors.ts';
import type { Caller, Principal, TokenHolder } from '#src/core/principal.ts';

/** Returns why a caller may no longer do `action`, or no longer come in at all; undefined when it may. */
export type RefusalOf = (caller: Caller, action?: string) => AppError | undefined;

/** A request whose caller was checked when `changesSeen` was the count of changes. */
interface CheckedRequest {
  readonly principal: Principal | undefined;
  readonly holder: TokenHolder | undefined;
  readonly changesSeen: number;
}

export class CallerChanges {
  #count = 0;
  #refusalOf: RefusalOf = () => undefined;

  /** How many changes there were of what callers may do. */
  get count(): number {
    return this.#count;
  }

  /** Notes that callers may have lost rights. */
  note(refusalOf: RefusalOf): void {
    this.#count++;
    this.#refusalOf = refusalOf;
  }

  /** Throws the refusal of a caller who has lost the right to do `action` since the request was admitted. */
  check({ principal, holder, changesSeen }: CheckedRequest, action: string | undefined): void {
    if (changesSeen === this.#count) return;
    const caller = principal ?? holder;
    const refusal = caller && this.#refusalOf(caller, action);
    if (refusal !== undefined) throw refusal;
  }
}
