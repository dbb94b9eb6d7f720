import assert from 'node:assert/strict';
import test from 'node:test';
import { withReferences } from '#src/notebook/saved/public-files.ts';
import { assertLinear } from '#test/support/growth.ts';

/** Returns HTML with each reference to a public file in brackets. */
const marked = (html: string) => withReferences(html, (reference) => `[${reference}]`);

test('references to public files are found only in sources, in lists of pictures and in styles', () => {
  const cases: readonly (readonly [html: string, expected: string])[] = [
    ['<img src="public/a.png">', '<img src="[public/a.png]">'],
    ["<img src='./public/a b.png'>", "<img src='[./public/a b.png]'>"],
    [
      '<img srcset="public/a.png 1x, /public/b.png 2x,public/c.png 3x">',
      '<img srcset="[public/a.png] 1x, [/public/b.png] 2x,[public/c.png] 3x">',
    ],
    ['<source srcset=" public/a.png">', '<source srcset=" [public/a.png]">'],
    [
      '<img srcset="https://x.example/a,public/b.png 1x">',
      '<img srcset="https://x.example/a,public/b.png 1x">',
    ],
    ['<p style="background: url(public/a.png)">', '<p style="background: url([public/a.png])">'],
    ['<p style=\'background: URL( "public/a.png" )\'>', '<p style=\'background: URL( "[public/a.png]" )\'>'],
    [
      '<p style="background: url(&quot;public/a.png&quot;)">',
      '<p style="background: url(&quot;[public/a.png]&quot;)">',
    ],
    [
      '<style media="all">@font-face { src: url("public/f.woff2"), url(public/f.ttf) } a > b {}</style>',
      '<style media="all">@font-face { src: url("[public/f.woff2]"), url([public/f.ttf]) } a > b {}</style>',
    ],
    ['<p>url(public/a.png) and src=public/a.png</p>', '<p>url(public/a.png) and src=public/a.png</p>'],
    ['<p style="background: url(x/public/a.png)">', '<p style="background: url(x/public/a.png)">'],
    ['<img src="publicity/a.png">', '<img src="publicity/a.png">'],
  ];
  for (const [html, expected] of cases) assert.equal(marked(html), expected);
});

test('the time to find references grows in proportion to the HTML, for any HTML', () => {
  const parts = {
    'style attributes without an end': ' style="url(',
    'style sheets without an end': '<style ',
    'sheets within sheets': '<style>url(',
    'lists without an end': ' srcset="public/',
    'commas and blanks': ' srcset=",     ',
    'sources without an end': ' src="public/',
    'blanks after a function': '<style>url(          ',
  };
  for (const [what, part] of Object.entries(parts))
    assertLinear(what, 100_000, (size) => marked(part.repeat(size / 10)));
  for (const start of ['<style>url(', ' style="url(', ' srcset="', ' style=', '<style'])
    assertLinear(`blanks after ${start}`, 2_000_000, (size) => marked(start + ' '.repeat(size)));
});
