import assert from 'node:assert/strict';
import test from 'node:test';
import { adviceOnMissingModule } from '#src/workspace/packages/missing-module.ts';

const rules = { mayInstall: true, has: (name: string) => name === 'seaborn' };
const advice = (text: string, type = 'ModuleNotFoundError') => adviceOnMissingModule(type, text, rules);

test('the advice names the package of a missing module, for each of its submodules and every wording of the error', () => {
  for (const [text, name] of [
    ["No module named 'humanize'", 'humanize'],
    ["No module named 'sklearn.svm'", 'scikit-learn'],
    ["No module named 'PIL'", 'pillow'],
    ["No module named 'My_Module'", 'my-module'],
    ['plotly is required for `mo.ui.plotly`.', 'plotly'],
  ] as const)
    assert.ok(advice(text).includes(`\`troupe packages add ${name}\``), text);
});

test('a package that was added to the workspace later is available once the session is reopened', () => {
  assert.match(advice("No module named 'seaborn'"), /^The workspace has the package seaborn/);
});

test('other errors get no advice, and a server without installations gives other advice', () => {
  assert.equal(advice("name 'x' is not defined", 'NameError'), '');
  assert.equal(advice('something else'), '');
  const closed = { ...rules, mayInstall: false };
  assert.match(
    adviceOnMissingModule('ModuleNotFoundError', "No module named 'x'", closed),
    /TROUPE_PACKAGES/,
  );
});
