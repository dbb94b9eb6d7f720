/** The lint of regular expressions: those whose cost grows with the square of a text's length are refused. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { importSetup } from './checkout.ts';

const { findSlowExpressions, problemsIn } = (await importSetup('check-regexps')) as {
  findSlowExpressions(): readonly string[];
  problemsIn(path: string, text: string): readonly string[];
};

const FILE = String.raw`/** A docstring with /x+$/ in it. */
import type { Thing } from './thing.ts';
const WORD = '\\d+';
export const read = <T extends Thing,>(text: string, one: T): string => text.replace(/\/+$/, '') + one!.name;
export const page = (text: string) => <p title={/a+$/.exec(text)?.[0]}>{text as never}</p>;
const made: RegExp = new RegExp(WORD + ';');
const schema = { type: 'string', pattern: '^(a*)*$' };
const second = text.match(/^ *x/) ?? text.match(/ *, *y/);
// eslint-disable-next-line regexp/no-super-linear-move -- the text has at most ten characters
const bounded = /b+$/;
const linear = /(?<!b)b+$/;
`;

test('an expression of quadratic cost is found in a literal, in JSX, in a call of RegExp and in the pattern of a schema', () => {
  const places = problemsIn('file.tsx', FILE).map((problem) => problem.split(' ')[0]);
  // The call of `RegExp` is reported at the text from which it is made.
  assert.deepEqual(places, [
    'file.tsx:3:15',
    'file.tsx:4:87',
    'file.tsx:5:50',
    'file.tsx:7:46',
    'file.tsx:8:50',
  ]);
});

test('a comment that excuses an expression must be needed', () => {
  const [problem, ...others] = problemsIn(
    'file.ts',
    '// eslint-disable-next-line regexp/no-super-linear-move -- none\nconst a = /^b+$/;\n',
  );
  assert.match(problem ?? '', /^file\.ts:1:1 .*no problems were reported/);
  assert.deepEqual(others, []);
});

test('no regular expression of the sources takes more than linear time, except for texts with a bound', () => {
  assert.deepEqual(findSlowExpressions(), []);
});
