import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Descriptions } from '#src/datasource/query/descriptions.ts';

const which = (slug: string, revision = 1, id = `ds_${slug}`) => ({ slug, id, revision });
const description = (name: string) => ({ tables: [{ schema: null, name, columns: [] }], isCut: false });
const bytesOf = (name: string) => JSON.stringify(description(name)).length;

function fixture(limits: { count?: number; bytes?: number } = {}) {
  const clock = { now: 0 };
  const descriptions = new Descriptions(
    { count: 100, bytes: 100_000, ageMs: 1_000, ...limits },
    () => clock.now,
  );
  return { clock, descriptions };
}

test('a description is found only for the right workspace, datasource and revision, until the description is dropped', () => {
  const { descriptions } = fixture();
  descriptions.keep('ws', which('a'), description('t'));
  assert.deepEqual(descriptions.get('ws', which('a')), description('t'));
  assert.equal(descriptions.get('ws', which('a', 2)), undefined);
  assert.equal(descriptions.get('ws', which('a', 1, 'ds_later')), undefined);
  assert.equal(descriptions.get('other', which('a')), undefined);
  descriptions.drop('ws', 'a');
  assert.equal(descriptions.get('ws', which('a')), undefined);
  assert.deepEqual(descriptions.size, { count: 0, bytes: 0 });
});

test('every access removes expired descriptions', () => {
  const { clock, descriptions } = fixture();
  descriptions.keep('ws', which('a'), description('t'));
  clock.now = 999;
  assert.deepEqual(descriptions.get('ws', which('a')), description('t'));
  clock.now = 1_000;
  assert.equal(descriptions.get('ws', which('b')), undefined);
  assert.equal(descriptions.size.count, 0);
});

test('the oldest descriptions are removed when there are too many, or too many bytes', () => {
  const few = fixture({ count: 2 }).descriptions;
  for (const slug of ['a', 'b', 'c']) few.keep('ws', which(slug), description(slug));
  assert.deepEqual(
    ['a', 'b', 'c'].map((slug) => few.get('ws', which(slug)) !== undefined),
    [false, true, true],
  );
  const small = fixture({ bytes: bytesOf('a') * 2 }).descriptions;
  for (const slug of ['a', 'b', 'c']) small.keep('ws', which(slug), description(slug));
  assert.deepEqual(small.size, { count: 2, bytes: bytesOf('a') * 2 });
});

test('a description that is too large is not kept, and removes an outdated description', () => {
  const { descriptions } = fixture({ bytes: 1_000 });
  descriptions.keep('ws', which('a'), description('t'));
  descriptions.keep('ws', which('a'), description('t'.repeat(600)));
  assert.equal(descriptions.get('ws', which('a')), undefined);
  assert.deepEqual(descriptions.size, { count: 0, bytes: 0 });
});
