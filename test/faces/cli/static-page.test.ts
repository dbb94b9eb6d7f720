/** Reports: the executed notebook as a page that runs nothing. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { formulaOf } from '#src/faces/cli/show/formulas.ts';
import { finalText } from '#src/faces/cli/show/printed-text.ts';
import { safeHtml } from '#src/faces/cli/show/safe-html.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const shell = new Shell(test, await startServer(test));

test('inline and display formulas become MathML', () => {
  for (const [content, isApart] of [
    ['||(a \\times b||)', false],
    ['||[\\frac{a}{b}||]', true],
    ['||(||(\\theta||)||)', true],
  ] as const) {
    const html = safeHtml(`<p>so <marimo-tex class="arithmatex">${content}</marimo-tex></p>`, formulaOf);
    assert.match(html, /<p>so <math/);
    assert.equal(/display="block"/.test(html), isApart, content);
    assert.doesNotMatch(html, /\|\||marimo-tex/);
  }
  assert.match(formulaOf('||(a \\times b||)'), /×/);
});

test('a formula that TeX does not know, or that does not end, is shown as written', () => {
  assert.match(formulaOf('||(\\nosuchmacro{<x>}||)'), /^<code>\$\\nosuchmacro\{&lt;x>\}\$<\/code>$/);
  assert.match(formulaOf('||(\\def\\a{\\a\\a}\\a||)'), /^<code>/);
  assert.match(formulaOf(`||(${'x'.repeat(20_001)}||)`), /^<code>/);
  assert.match(formulaOf(`||(${'x'.repeat(19_990)}||)`), /^<math/);
});

test('a formula cannot lead the reader elsewhere', () => {
  for (const tex of [
    '\\href{javascript:alert(1)}{x}',
    '\\includegraphics{https://evil.example/x.png}',
    '\\text{</math><script>}',
  ]) {
    const html = safeHtml(`<marimo-tex>||(${tex.replace(/</g, '&lt;')}||)</marimo-tex>`, formulaOf);
    assert.doesNotMatch(html.replace(/>[^<]*</g, '><'), /javascript:|evil|<script/i, tex);
  }
});

test('a progress bar is one line in its final state', () => {
  assert.equal(
    finalText(' 0%|    |\r50%|##  |\r100%|####| done\nnext\r\nlast'),
    '100%|####| done\nnext\nlast',
  );
  assert.equal(finalText('longer line\rshort'), 'shortr line');
  assert.equal(finalText('\x1b[31mred\x1b[0m\x1b]0;title\x07 \x1b[A'), 'red ');
});

test('a report shows formulas and the last line of progress bars, names outputs that cannot be shown, and omits code on request', async () => {
  const cells = {
    imports: 'import marimo as mo\nimport altair as alt\nimport pandas as pd\nimport sys',
    head: 'mo.md(r"# Title $a \\times b$")',
    progress:
      'for n in range(1, 101):\n    print(f"\\r{n}% of it", end="", file=sys.stderr)\nprint(" over", file=sys.stderr)',
    chart: 'alt.Chart(pd.DataFrame({"x": [1, 2]})).mark_point().encode(x="x")',
    last: 'secret_of_the_code = 1',
  };
  writeFileSync(join(shell.cwd, 'report.py'), marimoFile(cells));
  // without a browser that draws charts
  const ran = await shell.troupe(['run', 'report.py', '-o', 'report.html'], { env: { PATH: '/nowhere' } });
  assert.equal(ran.exitCode, 0, ran.err);
  assert.match(ran.err, /report\.html has only the text of chart: a chart of altair/);
  const page = readFileSync(join(shell.cwd, 'report.html'), 'utf8');
  assert.match(page, /<math><mrow><mi>a<\/mi><mo>(×|&#xd7;)/);
  assert.match(page, /<pre class="stderr">100% of it over\s*<\/pre>/);
  assert.match(page, /secret_of_the_code/);
  const { exitCode } = await shell.troupe(['run', 'report.py', '-o', 'bare.html', '--hide-code']);
  assert.equal(exitCode, 0);
  const bare = readFileSync(join(shell.cwd, 'bare.html'), 'utf8');
  assert.doesNotMatch(bare, /secret_of_the_code|<code>/);
  assert.match(bare, /<math/);
});
