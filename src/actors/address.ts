import type { WorkspaceId } from '#src/core/ids.ts';

/** Where an actor is, whether it is in memory or not. Actors are only ever spoken to by address. */
export interface Address {
  readonly workspaceId: WorkspaceId;
  readonly kind: string;
  readonly id: string;
}

export function addressText(address: Address): string {
  return `${address.workspaceId}/${address.kind}/${address.id}`;
}
