/**
 * Checks callers again when their rights may have changed since admission. A body may arrive slowly
 * and a request may wait for its turn. A caller that has lost its right in the meantime must be
 * refused.
 */
import type { Caller, Principal, TokenHolder } from '#src/base/caller/principal.ts';

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
   * Puts the caller's current role into the request, because handlers decide by it. Call it when `changesSeen` is not `count` any
   * more. Throws when the caller has lost the right to do `action` since admission.
   */
  renew(request: CheckedRequest, action: string | undefined): void {
    const caller = request.principal ?? request.holder;
    const renewed = caller && this.#renew(caller, action);
    if (renewed !== undefined && 'workspaceId' in renewed) request.principal = renewed;
    request.changesSeen = this.count;
  }
}
