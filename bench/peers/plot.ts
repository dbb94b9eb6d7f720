/** A plot of one comparison as SVG, which follows the reader's light or dark theme. The axis is logarithmic. */
import { spreadOf } from '../measure.ts';
import { shown } from '../report.ts';
import type { ComparisonOutcome } from './compare.ts';

const WIDTH = 720;
const LEFT = 120;
const RIGHT = 110;
const TOP = 44;
const ROW = 34;
const BOTTOM = 40;
/** Room at both ends of the axis, in powers of ten. */
const MARGIN = 0.08;

const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; }
  .note { fill: #59636e; font-size: 12px; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .range { stroke: #818b98; stroke-width: 3; stroke-linecap: round; }
  .tail { stroke: #818b98; stroke-width: 1; stroke-dasharray: 2 3; }
  .dot { fill: #59636e; }
  .troupe .range, .troupe .tail { stroke: #0969da; }
  .troupe .dot { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .note { fill: #9198a1; }
    .grid { stroke: #3d444d; }
    .range, .tail { stroke: #9198a1; }
    .dot { fill: #d1d7e0; }
    .troupe .range, .troupe .tail { stroke: #4493f8; }
    .troupe .dot { fill: #4493f8; }
  }`;

/** Returns the plot: for each server the median as a dot, p10 to p90 as a line, and p99 as its dotted end. */
export function plotOf({ comparison, figures }: ComparisonOutcome): string {
  const { unit, name, title } = comparison;
  const rows = figures.map((one) => ({
    ...one,
    spread: one.rounds.length === 0 ? undefined : spreadOf(one.rounds.flat()),
  }));
  const values = rows.flatMap(({ spread }) => (spread ? [spread.p10, spread.p50, spread.p99] : []));
  const low = Math.log10(Math.max(1e-3, Math.min(...values, 1e9))) - MARGIN;
  const high = Math.log10(Math.max(1e-3, ...values)) + MARGIN;
  const x = (value: number) =>
    LEFT + ((Math.log10(Math.max(value, 1e-3)) - low) / (high - low)) * (WIDTH - LEFT - RIGHT);
  const height = TOP + rows.length * ROW + BOTTOM;
  const bottom = height - BOTTOM + 4;
  const direction = unit === 'ms' ? 'left is better' : 'right is better';
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="${escaped(`${name}: ${title}`)}">`,
    `<style>${STYLE}\n</style>`,
    `<text class="title" x="8" y="20">${escaped(name)}</text>`,
    `<text class="note" x="${WIDTH - 8}" y="20" text-anchor="end">${unit === 'ms' ? 'milliseconds' : 'per second'}, logarithmic; ${direction}</text>`,
    ...ticks(low, high).flatMap((tick) => [
      `<line class="grid" x1="${at(x(tick))}" x2="${at(x(tick))}" y1="${TOP - 10}" y2="${bottom}"/>`,
      `<text class="note" x="${at(x(tick))}" y="${bottom + 18}" text-anchor="middle">${shown(tick)}</text>`,
    ]),
  ];
  for (const [i, { name: who, spread }] of rows.entries()) {
    const y = TOP + i * ROW + ROW / 2;
    parts.push(`<g class="${who}"><text x="${LEFT - 12}" y="${y + 4}" text-anchor="end">${who}</text>`);
    if (spread === undefined) parts.push(`<text class="note" x="${LEFT}" y="${y + 4}">no figure</text>`);
    else {
      parts.push(
        line('tail', x(spread.p90), x(spread.p99), y),
        line('range', x(spread.p10), x(spread.p90), y),
        `<circle class="dot" cx="${at(x(spread.p50))}" cy="${y}" r="6"/>`,
        `<text x="${WIDTH - RIGHT + 12}" y="${y + 4}">${shown(spread.p50)} ${unit}</text>`,
      );
    }
    parts.push('</g>');
  }
  return `${[...parts, '</svg>'].join('\n')}\n`;
}

/** Returns the marks on the axis: the powers of ten, and 2 and 5 times these when there are few. */
function ticks(low: number, high: number): readonly number[] {
  const steps = high - low > 3 ? [1] : [1, 2, 5];
  const found: number[] = [];
  for (let power = Math.floor(low); power <= high; power++) {
    for (const step of steps) found.push(step * 10 ** power);
  }
  return found.filter((value) => Math.log10(value) >= low && Math.log10(value) <= high);
}

function line(kind: string, from: number, to: number, y: number): string {
  return `<line class="${kind}" x1="${at(from)}" x2="${at(to)}" y1="${y}" y2="${y}"/>`;
}

function at(value: number): string {
  return value.toFixed(1);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
