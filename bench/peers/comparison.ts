/** One operation that all servers perform, and how far ahead of them Troupe should be. */
import type { Unit } from '../measure.ts';
import type { Contestant, ContestantName, Subject } from './subject.ts';

/** The targets of Troupe as ratios within one run, because absolute times differ from machine to machine. */
export interface RatioTargets {
  /** How many times better Troupe should be than the better one of the peers, with the peers' usual settings. */
  readonly peer?: number;
  /**
   * How far Troupe may be from the limit of the machine: a time may be at most this multiple of the limit, and a rate must be
   * at least this share of it.
   */
  readonly limit?: number;
  /** Whether the 99th percentile must be at most that of the better peer. */
  readonly tail?: boolean;
}

/** A further figure of a trial, such as the memory that it took. */
export interface Aside {
  readonly label: string;
  readonly unit: Unit;
  readonly value: number;
}

/** A server that is prepared for one comparison. */
export interface Trial {
  /** Performs the operation once. Returns one sample, or several that belong together. */
  sample(): Promise<readonly number[]>;
  asides?(): readonly Aside[];
  end(): Promise<void>;
}

export interface Comparison {
  readonly name: string;
  readonly title: string;
  readonly unit: 'ms' | '/s';
  /** The statistic of a round's samples that is compared; the median unless it is given. */
  readonly statistic?: 'p99';
  /** Samples of one round, of a whole and of a quick run. */
  readonly perRound: number;
  readonly quickPerRound?: number;
  readonly targets: RatioTargets;
  /** The reasons why some servers have no figure. */
  readonly absent?: Partial<Record<ContestantName, string>>;
  /** Returns undefined for a server that lacks the operation. */
  begin(subject: Subject, contestant: Contestant, quick: boolean): Promise<Trial | undefined>;
}
