import assert from 'node:assert/strict';
import test from 'node:test';
import { atOnce } from '#src/base/async/slices.ts';
import { EncodedJson, prepareObject, writeJson } from '#src/base/json/json-write.ts';
import { encodeLongString, prepareStrings, preparing } from '#src/base/json/prepared-strings.ts';

const LONG = 'a "line" with \\ and ä\n'.repeat(20_000);
const stepsOf = (steps: Iterator<unknown>) => {
  let count = 0;
  while (steps.next().done !== true) count++;
  return count;
};
const textOf = (value: unknown) => Buffer.concat(atOnce(writeJson(value))).toString();

test('an encoded string replaces its value, in arrays and objects', () => {
  const list = new EncodedJson([Buffer.from('[1,'), Buffer.from('2]')]);
  assert.equal(
    textOf({ before: 'x', list, many: [list, null, list] }),
    '{"before":"x","list":[1,2],"many":[[1,2],null,[1,2]]}',
  );
});

test('a string that was prepared is not encoded again, and its JSON is the same', async () => {
  const json = JSON.stringify({ code: LONG });
  const steps = stepsOf(encodeLongString(LONG));
  assert.ok(steps > 10);
  {
    using _prepared = await prepareStrings([LONG, 'short']);
    assert.equal(stepsOf(encodeLongString(LONG)), 0);
    assert.equal(textOf({ code: LONG }), json);
  }
  assert.equal(stepsOf(encodeLongString(LONG)), steps);
  assert.equal(textOf({ code: LONG }), json);
});

test('a string that two requests have prepared stays prepared until the second request ends', async () => {
  const [one, other] = await Promise.all([prepareStrings([LONG]), prepareStrings([LONG, LONG])]);
  one[Symbol.dispose]();
  one[Symbol.dispose]();
  assert.equal(stepsOf(encodeLongString(LONG)), 0);
  other[Symbol.dispose]();
  assert.ok(stepsOf(encodeLongString(LONG)) > 0);
});

test('an abandoned preparation of strings leaves nothing in memory', () => {
  const steps = preparing([LONG, `${LONG}and another`]);
  while (stepsOf(encodeLongString(LONG)) > 0) assert.notEqual(steps.next().done, true);
  steps.return({ [Symbol.dispose]: () => undefined });
  assert.ok(stepsOf(encodeLongString(LONG)) > 0);
});

test('a list that was prepared is not encoded again, and its JSON is the same', (t) => {
  const list = Array.from({ length: 20_000 }, (_, at) => ({ at, text: 'ä "'.repeat(10) }));
  const json = JSON.stringify({ before: [null, undefined, 'x'], list });
  assert.equal(textOf({ before: [null, undefined, 'x'], list }), json, 'before it is prepared');
  const stringify = t.mock.method(JSON, 'stringify');
  const steps = stepsOf(prepareObject(list));
  assert.ok(steps > 10);
  assert.ok(
    stringify.mock.callCount() < 100,
    `${stringify.mock.callCount()} calls: short items are written together`,
  );
  const calls = stringify.mock.callCount();
  const again = Buffer.concat(atOnce(writeJson({ before: [null, undefined, 'x'], list })));
  const [sinceThen, longest] = [stringify.mock.calls.slice(calls), again.toString()];
  t.mock.restoreAll();
  assert.equal(longest, json);
  assert.ok(sinceThen.every(({ result }) => (result?.length ?? 0) < 100));
});
