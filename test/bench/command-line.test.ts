// tier: whole, because it runs scenarios of the bench
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCommandLine, select, UsageError } from '../../bench/command-line.ts';

const ALL = ['gets', 'creates', 'session-open', 'session-starts'].map((name) => ({ name, title: name }));
const names = (...wanted: string[]) => select(ALL, wanted).map(({ name }) => name);

test('names of scenarios are arguments, and a part of a name selects all matching scenarios', () => {
  assert.deepEqual(parseCommandLine(['gets', 'creates', '--quick']).names, ['gets', 'creates']);
  assert.deepEqual(names('creates', 'gets'), ['gets', 'creates']);
  assert.deepEqual(names('session'), ['session-open', 'session-starts']);
  assert.deepEqual(names(), ['gets', 'creates', 'session-open', 'session-starts']);
});

test('a wrong name is refused in one line with the nearest names', () => {
  assert.throws(() => names('gtes'), new UsageError('There is no scenario "gtes". Did you mean gets?'));
  assert.throws(
    () => names('nothing-like-it'),
    /^Error: There is no scenario "nothing-like-it"\. --list shows/,
  );
  assert.throws(() => names(''), UsageError);
});

test('a wrong option is refused in one line with the nearest option', () => {
  assert.throws(
    () => parseCommandLine(['--quik']),
    new UsageError('There is no option --quik. Did you mean --quick?'),
  );
  assert.throws(
    () => parseCommandLine(['--server']),
    (error) => {
      assert.ok(error instanceof UsageError);
      assert.doesNotMatch(error.message, /\n/);
      return true;
    },
  );
  assert.throws(() => parseCommandLine(['--peers', '--profile']), UsageError);
});
