import type { WorkspaceId } from '#src/base/ids.ts';

/** Names one actor among the actors of its kind, whether the actor is in memory or not. */
export interface ActorId {
  readonly workspaceId: WorkspaceId;
  readonly id: string;
}

/** Names one actor among all actors. */
export interface Address extends ActorId {
  readonly kind: string;
}

/** Returns the address as one line, for logs and errors. */
export function addressText({ workspaceId, kind, id }: Address): string {
  return `${workspaceId}/${kind}/${id}`;
}
