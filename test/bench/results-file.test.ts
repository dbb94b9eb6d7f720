import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { flameGraph } from '../../bench/profile/flame-graph.ts';
import { RATIOS_HEADING, writeResults } from '../../bench/results-file.ts';

const folder = mkdtempSync(join(tmpdir(), 'troupe-results-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, 'RESULTS.md');
const machine = {
  cpu: 'A',
  cores: 2,
  memoryGiB: 4,
  kernel: '6',
  system: 'Linux',
  node: '20',
  python: '3',
  date: '2026-01-01',
  load: 0.1,
};

test('a new measurement replaces its section, the ratios come first, and the rest of the file is unchanged', () => {
  writeFileSync(
    path,
    '# Results\n\nWritten by hand.\n\nMachine: old\n\n## one\n\nold one\n\n## two\n\nold two\n',
  );
  writeResults(folder, machine, [
    { heading: 'two', lines: ['new two'] },
    { heading: RATIOS_HEADING, lines: ['ratios', '### one of them'] },
  ]);
  const text = readFileSync(path, 'utf8');
  assert.match(
    text,
    /^# Results\n\nWritten by hand\.\n\nMachine: A, 2 cores.*\n\n## Beside others\n\nMachine: A.*\n\nratios\n### one/,
  );
  assert.deepEqual(text.match(/^## .*/gm), ['## Beside others', '## one', '## two']);
  assert.match(text, /old one/);
  assert.doesNotMatch(text, /old two/);
});

test('figures of a busy machine carry a warning', () => {
  writeResults(folder, { ...machine, load: 7 }, [{ heading: 'one', lines: ['busy one'] }]);
  assert.match(
    readFileSync(path, 'utf8'),
    /## one\n\n\*\*Measured on 2026-01-01 beside other programs \(load 7\)/,
  );
});

test('a flame graph merges equal functions below one caller, and leaves out frames too narrow to see', () => {
  const leaf = (name: string, self: number) => ({ name, place: 'a.js:1', self, children: [] });
  const root = { ...leaf('root', 0), children: [leaf('f', 500), leaf('f', 499), leaf('tiny', 0.5)] };
  const svg = flameGraph(root, 'a < b', (value) => `${value} µs`);
  assert.match(svg, /<title>f a\.js:1: 999 µs/);
  assert.doesNotMatch(svg, /tiny/);
  assert.match(svg, /a &lt; b/);
});
