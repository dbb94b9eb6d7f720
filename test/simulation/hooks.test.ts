import assert from 'node:assert/strict';
import test from 'node:test';
import { prepared } from './hooks.ts';

const URL = 'file:///built/src/a.js';

test('variables and collections of a module begin anew with each life, and constants stay', () => {
  const text = [
    'let count = start();',
    'let shared;',
    'const waiting = new Map();',
    'const list = [];',
    'const KNOWN = new Set();',
  ];
  const restart = prepared(URL, text.join('\n'), []).slice(text.join('\n').length);
  for (const step of ['count = start();', 'shared = undefined;', 'waiting.clear();', 'list.length = 0;'])
    assert.ok(restart.includes(step), step);
  assert.ok(!restart.includes('KNOWN'));
  assert.ok(!prepared(URL, '    let inner = 1;', []).includes('atEachLife'));
});

test('an import at a later time stops the world until the module is there', () => {
  assert.equal(
    prepared(URL, "  await import('#a')", []),
    "  await globalThis.stopWorldFor(() => import('#a'))",
  );
  for (const other of ['files.import(a)', 'async import(a) {', 'this.#import(a)'])
    assert.equal(prepared(URL, other, []), other);
  assert.match(prepared(URL, 'import(path(here))', []), /stopWorldFor\(\(\) => import\(path\(here\)\)\)/);
});

test('the edits of a mutant are made in their module only', () => {
  const edit = { url: URL, from: 'a + b', to: 'a - b' };
  assert.equal(prepared(URL, 'f(a + b)', [edit]), 'f(a - b)');
  assert.equal(prepared('file:///built/src/b.js', 'f(a + b)', [edit]), 'f(a + b)');
});

test('the state of a module begins anew with the process to whose graph the module belongs', () => {
  assert.match(prepared(`${URL}?process=2`, 'let count = 0;', []), /atEachLife\("2", /);
  assert.match(prepared(URL, 'let count = 0;', []), /atEachLife\("", /);
});

test('the edits of a mutant are made in the graph of each process', () => {
  const edit = { url: URL, from: 'a + b', to: 'a - b' };
  assert.equal(prepared(`${URL}?process=2`, 'f(a + b)', [edit]), 'f(a - b)');
});

test('handlers of signals are those of the simulated process, in programs only', () => {
  const text = "process.on('SIGHUP', act);";
  const program = 'file:///built/src/start/process/serve.js';
  assert.equal(prepared(program, text, []), "globalThis.onSignalOfProcess('SIGHUP', act);");
  assert.equal(prepared(URL, text, []), text);
});
