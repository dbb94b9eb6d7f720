/** The part of a user that the simulation uses: users of notebooks and of agents have it. */

export interface SimulatedUser {
  readonly name: string;
  /** The id of the session. */
  readonly sessionId: string | undefined;
  /** Where the runs of the session are listed; undefined until the session was opened once. */
  readonly runsPath: string | undefined;
  /** The runs that the server has acknowledged, and that were not deleted. */
  readonly acknowledged: ReadonlySet<string>;
  /** Acts until `isOver` returns true. */
  live(isOver: () => boolean): Promise<void>;
  /** The user does nothing until this resolves, because somebody compares what the server says. */
  waitFor(calm: Promise<void>): void;
  /** Right after a start of the server: what it had acknowledged beside runs holds. */
  inspect(): Promise<void>;
  /**
   * At the very end, when nothing else happens: the session can be opened and takes a run, whose end reaches the subscriber. Resolves
   * with what is wrong; undefined when all is well.
   */
  useOnceMore(): Promise<string | undefined>;
  stopFollowing(): void;
}
