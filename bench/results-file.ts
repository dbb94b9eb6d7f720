/** RESULTS.md: a preamble that people write, the machine, and a section for each thing that was measured. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Machine } from './machine.ts';

/** A section: its heading without the hashes, and its lines. */
export interface Section {
  readonly heading: string;
  readonly lines: readonly string[];
}

/** When the load of the minute before the run was above this, the figures cannot be compared. */
const BUSY_LOAD = 1;
const MACHINE = /^Machine: .*$/m;

/** The sections with the ratios, which stay the first. */
export const RATIOS_HEADING = 'Beside others';
export const YOUNG_HEADING = 'Beside others, ten seconds after the start';
const RATIOS: readonly string[] = [RATIOS_HEADING, YOUNG_HEADING];

/** Writes these sections in place of those of the same name, and keeps the others. The ratios name their own machine. */
export function writeResults(folder: string, machine: Machine, sections: readonly Section[]): void {
  const path = join(folder, 'RESULTS.md');
  const [preamble = '', ...old] = readFileSync(path, 'utf8').split(/^## /m);
  const kept = new Map(old.map((text) => [text.slice(0, text.indexOf('\n')), `## ${text.trimEnd()}`]));
  for (const { heading, lines } of sections) {
    const own = RATIOS.includes(heading) ? [`Machine: ${describe(machine)}`, ''] : [];
    kept.set(heading, [`## ${heading}`, '', ...busyNote(machine), ...own, ...lines].join('\n'));
  }
  const isOfScenarios = sections.some(({ heading }) => !RATIOS.includes(heading));
  const ratios = RATIOS.flatMap((heading) => kept.get(heading) ?? []);
  for (const heading of RATIOS) kept.delete(heading);
  const parts = [
    (isOfScenarios ? preamble.replace(MACHINE, `Machine: ${describe(machine)}`) : preamble).trimEnd(),
    ...ratios,
    ...kept.values(),
  ];
  writeFileSync(path, `${parts.join('\n\n')}\n`);
}

/** Writes a plot that a section shows. */
export function writePlot(folder: string, name: string, svg: string): void {
  mkdirSync(join(folder, 'plots'), { recursive: true });
  writeFileSync(join(folder, 'plots', `${name}.svg`), svg);
}

/** Stores a flame graph next to the results. */
export function writeFlameGraph(folder: string, name: string, from: string): void {
  mkdirSync(join(folder, 'profiles'), { recursive: true });
  copyFileSync(from, join(folder, 'profiles', `${name}.svg`));
}

function busyNote({ date, load }: Machine): readonly string[] {
  if (load <= BUSY_LOAD) return [];
  return [
    `**Measured on ${date} beside other programs (load ${load}): these figures show that it works, and nothing else.**`,
    '',
  ];
}

function describe(machine: Machine): string {
  return (
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.system}, Linux ${machine.kernel}; ` +
    `Node ${machine.node}, Python ${machine.python}; ${machine.date}, load ${machine.load} before the run.`
  );
}
