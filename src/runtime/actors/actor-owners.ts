/** The processes that have actors in memory, and the rule which process decides for an actor. */
export interface ActorOwners {
  /** The name that this process writes into the actors it stores; undefined in a server of one process. */
  readonly own: string | undefined;
  /** Returns whether `owner` is the name of another living process. */
  livesElsewhere(owner: string): boolean;
  /**
   * Returns whether this process is the home of the notebook or conversation `id` of the workspace; without `id`, of the
   * workspace itself.
   */
  owns(workspaceId: string, id?: string): boolean;
}

/** The owners in a server of one process. */
export const ONE_OWNER: ActorOwners = { own: undefined, livesElsewhere: () => false, owns: () => true };
