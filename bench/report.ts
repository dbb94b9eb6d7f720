/** Reports figures for programs (a line of JSON per scenario), for people (a table), and for the record (RESULTS.md). */
import { isMet, type Measure, type Target, type Unit } from './measure.ts';
import type { Section } from './results-file.ts';
import type { Scenario } from './scenario.ts';

/** The figures of a scenario, or why there are none. */
export interface Outcome {
  readonly scenario: Scenario;
  readonly seconds: number;
  readonly measures: readonly Measure[];
  /** The error that ended the scenario. */
  readonly error?: string;
  /** The reason why the scenario cannot be measured on this machine. */
  readonly skipped?: string;
}

type Row = readonly [label: string, figures: string, target: string, verdict: string];

/** Returns the outcome as one line of JSON. */
export function jsonLine({ scenario, seconds, measures, error, skipped }: Outcome): string {
  return JSON.stringify({
    scenario: scenario.name,
    seconds: round(seconds),
    ...(error === undefined ? {} : { error }),
    ...(skipped === undefined ? {} : { skipped }),
    measures: measures.map((measure) => ({
      ...measure,
      targets: measure.targets.map((target) => ({ ...target, met: isMet(measure, target) })),
    })),
  });
}

/** Returns the outcome as a table for the terminal. */
export function table({ scenario, seconds, measures, error, skipped }: Outcome): string {
  const head = `\n${scenario.name}: ${scenario.title} (${seconds.toFixed(1)} s)\n`;
  if (error !== undefined) return `${head}  failed: ${error}\n`;
  if (skipped !== undefined) return `${head}  skipped: ${skipped}\n`;
  const rows = measures.map(rowOf);
  const widths = [0, 1, 2].map((i) => Math.max(...rows.map((row) => row[i]!.length)));
  return (
    head +
    rows
      .map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd())
      .join('\n')
  );
}

/** Returns the section of RESULTS.md with an outcome. */
export function sectionOf({ scenario, measures, error, skipped }: Outcome): Section {
  const head = [`${scenario.title}.`, ''];
  if (error !== undefined) return { heading: scenario.name, lines: [...head, `Failed: ${error}`] };
  if (skipped !== undefined) return { heading: scenario.name, lines: [...head, `Skipped: ${skipped}`] };
  const rows = measures.map((measure) => `| ${rowOf(measure).join(' | ')} |`);
  const table = ['| measured | figures | target | |', '| --- | --- | --- | --- |', ...rows];
  return { heading: scenario.name, lines: [...head, ...table] };
}

function rowOf(measure: Measure): Row {
  const { label, unit, value, targets } = measure;
  const figures =
    typeof value === 'number'
      ? withUnit(value, unit)
      : `p10 ${shown(value.p10)}  p50 ${shown(value.p50)}  p90 ${shown(value.p90)}  p99 ${shown(value.p99)}  max ${shown(value.max)} ${unit}, n ${value.samples}`;
  const verdict =
    targets.length === 0 ? '' : targets.every((target) => isMet(measure, target)) ? 'met' : 'missed';
  return [label, figures, targets.map((target) => describe(target, unit)).join(', '), verdict];
}

function describe({ of, limit, bound }: Target, unit: Unit): string {
  return `${of === 'value' ? '' : `${of} `}${bound === 'at most' ? '≤' : '≥'} ${withUnit(limit, unit)}`;
}

/** Returns the value with three digits and its unit. */
export function withUnit(value: number, unit: Unit): string {
  return unit === '' || unit === '/s' || unit === '%' || unit === '×'
    ? `${shown(value)}${unit}`
    : `${shown(value)} ${unit}`;
}

/** Returns the value with three digits. */
export function shown(value: number): string {
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString('en-US');
  return String(round(value));
}

/** Rounds to three digits, or to a whole number if that has more. */
function round(value: number): number {
  return Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3));
}
