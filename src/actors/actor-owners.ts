/** Which processes have actors in memory. */
export interface ActorOwners {
  /** What this process notes in the actors that it stores; undefined in a server of one process. */
  readonly own: string | undefined;
  /** Returns whether what another process noted is the name of one that lives. */
  livesElsewhere(owner: string): boolean;
}

/** In a server of one process. */
export const ONE_OWNER: ActorOwners = { own: undefined, livesElsewhere: () => false };
