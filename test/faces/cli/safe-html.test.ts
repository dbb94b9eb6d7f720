import assert from 'node:assert/strict';
import test from 'node:test';
import { safeHtml } from '#src/faces/cli/show/safe-html.ts';

test('HTML of a notebook is unchanged: text, tables, styles, links, drawings and embedded images', () => {
  for (const html of [
    '<p>Größe: 1 &lt; 2 &amp; <b>3</b> <code>a"b</code></p>',
    '<style>.t td { color: red }</style><table class="t"><tbody><tr><td colspan="2">1</td></tr></tbody></table>',
    '<a href="https://example.org/?a=1&amp;b=2">there</a><br><hr>',
    '<img src="data:image/png;base64,AAAA" alt="a &quot;plot&quot;">',
    '<svg viewBox="0 0 1 1"><linearGradient id="g"></linearGradient><path d="M0 0"></path></svg>',
    '<details open><summary>more</summary>text</details>',
  ])
    assert.equal(safeHtml(html), html);
});

test('HTML of a notebook cannot lead the reader elsewhere, nor load anything', () => {
  const refresh = '<meta http-equiv="refresh" content="0;url=https://evil.example/">';
  for (const html of [
    refresh,
    `<html><head>${refresh}<base href="https://evil.example/"></head><body>${refresh}</body></html>`,
    `<svg><style>${refresh}</style></svg>`,
    `<svg><title>${refresh}</title><desc>${refresh}</desc></svg>`,
    `<noscript><p title="</noscript>${refresh}"></noscript>`,
    `<xmp><p title="</xmp>${refresh}">`,
    `<textarea><p title="</textarea>${refresh}">`,
    `<template>${refresh}</template>`,
    `<x<y a="${'>'}${refresh}">`,
    `<math><mtext><table><mglyph><style><!--</style><img title="--&gt;${refresh.replaceAll('"', '')}">`,
    '<link rel="dns-prefetch" href="//evil.example"><iframe src="https://evil.example"></iframe>',
    '<script>location = "https://evil.example"</script>',
    '<a href=" java&#115;cript:alert(1)" onclick="alert(1)">x</a>',
  ]) {
    const safe = safeHtml(html);
    const markup = safe.replace(/"[^"]*"/g, '""');
    assert.doesNotMatch(markup, /<(meta|base|link|iframe|script)|onclick/i, html);
    assert.doesNotMatch(safe, /javascript:/i, html);
  }
});

test('an unclosed HTML element does not swallow the rest of the page', () => {
  for (const [html, safe] of [
    ['<!-- ', ''],
    ['<div><b>x', '<div><b>x</b></div>'],
    ['</section></body>x', 'x'],
    ['<p>x<textarea>', '<p>x</p>'],
    ['<a title="', ''],
    ['<svg><table/>', '<svg><table></table></svg>'],
  ] as const)
    assert.equal(safeHtml(html), safe);
});

test('an embedded page is kept in a sandbox, and a page at another address is left out', () => {
  const inner = '<meta http-equiv="refresh" content="0;url=https://evil.example/"><b>static</b>';
  const frame = `<iframe src="https://evil.example" height="40" sandbox="allow-top-navigation" srcdoc="${inner.replaceAll('"', '&quot;')}">`;
  assert.equal(
    safeHtml(`${frame}<p>not shown</p></iframe><iframe src="https://evil.example"></iframe>x`),
    `<iframe sandbox srcdoc="${inner.replaceAll('"', '&quot;')}" height="40"></iframe>x`,
  );
});

test('endlessly nested HTML is cut off', () => {
  assert.ok(safeHtml('<div>'.repeat(20_000)).length < 10_000);
});
