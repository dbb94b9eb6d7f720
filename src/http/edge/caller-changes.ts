/**
 * What has become of the rights of callers since their requests were admitted. A body may take long to come, and so may the turn
 * of a request: whoever has lost a right meanwhile must not use it any more.
 */
import type { Caller, Principal, TokenHolder } from '#src/core/principal.ts';

/**
 * Returns the caller with the role that it has now. Throws an `AppError` when it may not do `action` any more, or when its token or
 * its membership is gone.
 */
export type RenewCaller = (caller: Caller, action?: string) => Caller;

/** A request whose caller was checked when `changesSeen` was the count of changes. */
interface CheckedRequest {
  principal: Principal | undefined;
  readonly holder: TokenHolder | undefined;
  changesSeen: number;
}

export class CallerChanges {
  /** How often callers may have lost rights. Only this class changes it. */
  count = 0;
  #renew: RenewCaller = (caller) => caller;

  /** Notes that callers may have lost rights. */
  note(renew: RenewCaller): void {
    this.count++;
    this.#renew = renew;
  }

  /**
   * Puts the role that the caller has now into the request, because handlers decide by it. Throws the refusal of a caller who has
   * lost the right to do `action` since the request was admitted.
   */
  renew(request: CheckedRequest, action: string | undefined): void {
    if (request.changesSeen === this.count) return;
    const caller = request.principal ?? request.holder;
    const renewed = caller && this.#renew(caller, action);
    if (renewed !== undefined && 'workspaceId' in renewed) request.principal = renewed;
    request.changesSeen = this.count;
  }
}
