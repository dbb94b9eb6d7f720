/** The comparisons as text: the table of ratios, and the figures of each server. */
import { spreadOf } from '../measure.ts';
import { shown, withUnit } from '../report.ts';
import { RATIOS_HEADING, type Section, YOUNG_HEADING } from '../results-file.ts';
import type { ComparisonOutcome, Figures } from './compare.ts';
import { perRound } from './compare.ts';
import { type Ratio, type RatioRow, ratiosOf } from './ratios.ts';
import type { Contestant } from './subject.ts';

/** Returns the outcome as one line of JSON. */
export function comparisonLine(outcome: ComparisonOutcome): string {
  const { comparison, figures, seconds } = outcome;
  const { peer, tunedPeer, limit, isMet } = ratiosOf(outcome);
  return JSON.stringify({
    comparison: comparison.name,
    seconds: Math.round(seconds),
    unit: comparison.unit,
    ratios: { peer, tunedPeer, limit, targets: comparison.targets, isMet },
    figures: figures.map((one) => ({
      name: one.name,
      ...(one.absent === undefined ? {} : { absent: one.absent }),
      ...(one.rounds.length === 0
        ? {}
        : { rounds: perRound(comparison, one), ...spreadOf(one.rounds.flat()) }),
      asides: one.asides,
    })),
  });
}

/** Returns the outcome as lines for the terminal. */
export function comparisonText(outcome: ComparisonOutcome): string {
  const { comparison, figures, seconds } = outcome;
  const lines = figures.map((one) => `  ${one.name.padEnd(14)}${figureText(comparison.unit, one)}`);
  const [, ...cells] = ratioCells(ratiosOf(outcome));
  const titles = ['Troupe', 'ahead of the better peer', 'peer tuned', 'to the limit', 'targets', ''];
  const ratios = cells.map((cell, i) => (cell === '' ? '' : `${titles[i]}: ${cell}`)).filter(Boolean);
  return [
    `\n${comparison.name}: ${comparison.title} (${seconds.toFixed(0)} s)`,
    ...lines,
    `  ${ratios.join('; ')}`,
  ].join('\n');
}

/** Returns the section of RESULTS.md with the ratios and the figures from which they are calculated. */
export function ratiosSection(
  outcomes: readonly ComparisonOutcome[],
  contestants: readonly Contestant[],
  young: boolean,
): Section {
  const lines = [
    'Measured in turns by the same client in one run. A ratio is the median of the rounds, with the least and the most of',
    'them: × how many times Troupe is ahead of a peer, and what multiple (of times) or share (of rates) of the limit it',
    'reaches. Targets are for the better peer as it is shipped.',
    ...(young
      ? [
          '',
          'Each round has new servers, and begins ten seconds after their start, without anything to warm them up.',
        ]
      : []),
    '',
    ...contestants.map(({ name, title }) => `- \`${name}\`: ${title}`),
    '',
    '| | Troupe | ahead of the better peer | with Jupyter tuned | to the limit | targets | |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...outcomes.map((outcome) => `| ${ratioCells(ratiosOf(outcome)).join(' | ')} |`),
    ...outcomes.flatMap((outcome) => details(outcome, young)),
  ];
  return { heading: young ? YOUNG_HEADING : RATIOS_HEADING, lines };
}

function details({ comparison, figures }: ComparisonOutcome, young: boolean): string[] {
  return [
    '',
    `### ${comparison.name}`,
    '',
    `${comparison.title}.`,
    '',
    ...(young ? [] : [`![${comparison.name}](plots/${comparison.name}.svg)`, '']),
    '| | figures |',
    '| --- | --- |',
    ...figures.map((one) => `| ${one.name} | ${figureText(comparison.unit, one)} |`),
  ];
}

function figureText(unit: 'ms' | '/s', { rounds, asides, absent }: Figures): string {
  const further = asides.map(({ label, value, unit }) => `${label} ${withUnit(value, unit)}`);
  if (rounds.length === 0) return [`none: ${absent ?? 'no samples'}`, ...further].join('; ');
  const { p10, p50, p90, p99, samples } = spreadOf(rounds.flat());
  const values = `p10 ${shown(p10)}  p50 ${shown(p50)}  p90 ${shown(p90)}  p99 ${shown(p99)} ${unit}, n ${samples}`;
  return [values, ...further].join('; ');
}

function ratioCells({ outcome, peer, tunedPeer, limit, isMet }: RatioRow): readonly string[] {
  const { name, unit, statistic, targets } = outcome.comparison;
  const troupe = outcome.figures.find((one) => one.name === 'troupe');
  const rounds = troupe === undefined ? [] : perRound(outcome.comparison, troupe);
  const wanted = [
    ...(targets.peer === undefined ? [] : [`≥ ${targets.peer}×`]),
    ...(targets.tail ? ['p99 no worse'] : []),
    ...(targets.limit === undefined
      ? []
      : [`limit ${unit === 'ms' ? `≤ ${targets.limit}×` : `≥ ${targets.limit * 100}%`}`]),
  ];
  return [
    name,
    rounds.length === 0 ? '–' : `${statistic ?? 'p50'} ${withUnit(spreadOf(rounds).p50, unit)}`,
    timesText(peer),
    timesText(tunedPeer),
    limit === undefined ? '–' : unit === 'ms' ? multiple(limit) : share(limit),
    wanted.join(', '),
    isMet === undefined ? '' : isMet ? 'met' : 'missed',
  ];
}

function timesText(ratio: Ratio | undefined): string {
  return ratio === undefined ? '–' : `${multiple(ratio)} ${ratio.to}`;
}

function multiple({ value, least, most }: Ratio): string {
  return `**${shown(value)}×** (${shown(least)}–${shown(most)})`;
}

function share({ value, least, most }: Ratio): string {
  return `**${shown(value * 100)}%** (${shown(least * 100)}–${shown(most * 100)})`;
}
