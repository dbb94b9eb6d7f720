/** How far Troupe is ahead of its peers and from the limits: ratios of rounds that were measured at the same time. */
import { median, spreadOf } from '../measure.ts';
import { type ComparisonOutcome, type Figures, perRound } from './compare.ts';
import type { ContestantName } from './subject.ts';

/** A ratio: the median, the smallest and the largest value of the rounds. */
export interface Ratio {
  readonly to: ContestantName;
  readonly value: number;
  readonly least: number;
  readonly most: number;
}

/** A row of the table of ratios. */
export interface RatioRow {
  readonly outcome: ComparisonOutcome;
  /**
   * How many times better Troupe is than the better of the peers: as shipped, and with Jupyter
   * tuned.
   */
  readonly peer: Ratio | undefined;
  readonly tunedPeer: Ratio | undefined;
  /** For times, the multiple of the limit; for rates, the share of the limit. */
  readonly limit: Ratio | undefined;
  /** Whether all targets are met; undefined without targets, or without the figures for them. */
  readonly isMet: boolean | undefined;
}

const SHIPPED: readonly ContestantName[] = ['marimo', 'jupyter'];
const TUNED: readonly ContestantName[] = ['marimo', 'jupyter-tuned'];

export function ratiosOf(outcome: ComparisonOutcome): RatioRow {
  const peer = leastAhead(outcome, SHIPPED);
  const tunedPeer = leastAhead(outcome, TUNED);
  const limit = toLimit(outcome);
  return { outcome, peer, tunedPeer, limit, isMet: isMet(outcome, peer, limit) };
}

/** Returns the ratio to the peer that comes closest. */
function leastAhead(outcome: ComparisonOutcome, names: readonly ContestantName[]): Ratio | undefined {
  const ratios = names.flatMap((name) => ahead(outcome, name) ?? []);
  return ratios.toSorted((a, b) => a.value - b.value)[0];
}

function ahead(outcome: ComparisonOutcome, name: ContestantName): Ratio | undefined {
  const isTime = outcome.comparison.unit === 'ms';
  return ratio(outcome, name, (troupe, other) => (isTime ? other / troupe : troupe / other));
}

function toLimit(outcome: ComparisonOutcome): Ratio | undefined {
  return ratio(outcome, 'limit', (troupe, limit) => troupe / limit);
}

function ratio(
  outcome: ComparisonOutcome,
  to: ContestantName,
  divide: (troupe: number, other: number) => number,
): Ratio | undefined {
  const [troupe, other] = [figuresOf(outcome, 'troupe'), figuresOf(outcome, to)];
  if (troupe === undefined || other === undefined) return undefined;
  const others = perRound(outcome.comparison, other);
  const each = perRound(outcome.comparison, troupe)
    .slice(0, others.length)
    .map((value, round) => divide(value, others[round]!));
  if (each.length === 0) return undefined;
  return { to, value: median(each), least: Math.min(...each), most: Math.max(...each) };
}

/** Returns the figures of a server, if it has any. */
function figuresOf(outcome: ComparisonOutcome, name: ContestantName): Figures | undefined {
  return outcome.figures.find((one) => one.name === name && one.rounds.length > 0);
}

function isMet(outcome: ComparisonOutcome, peer: Ratio | undefined, limit: Ratio | undefined) {
  const { unit, targets } = outcome.comparison;
  const verdicts: (boolean | undefined)[] = [];
  if (targets.peer !== undefined) verdicts.push(peer && peer.value >= targets.peer);
  if (targets.limit !== undefined) {
    verdicts.push(limit && (unit === 'ms' ? limit.value <= targets.limit : limit.value >= targets.limit));
  }
  if (targets.tail) verdicts.push(peer && p99(outcome, 'troupe') <= p99(outcome, peer.to));
  return verdicts.length === 0 || verdicts.includes(undefined) ? undefined : verdicts.every(Boolean);
}

function p99(outcome: ComparisonOutcome, name: ContestantName): number {
  return spreadOf(figuresOf(outcome, name)?.rounds.flat() ?? []).p99;
}
