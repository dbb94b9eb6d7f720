/** Which processes have actors in memory, and which of them decides for an actor. */
export interface ActorOwners {
  /** What this process notes in the actors that it stores; undefined in a server of one process. */
  readonly own: string | undefined;
  /** Returns whether what another process noted is the name of one that lives. */
  livesElsewhere(owner: string): boolean;
  /**
   * Returns whether this process decides everything of a notebook or conversation (`id`) of the workspace; without `id`, whether it
   * decides what belongs to the workspace itself.
   */
  owns(workspaceId: string, id?: string): boolean;
}

/** In a server of one process. */
export const ONE_OWNER: ActorOwners = { own: undefined, livesElsewhere: () => false, owns: () => true };
