import assert from 'node:assert/strict';
import test from 'node:test';
import Type from 'typebox';
import { nullable, oneOf, pageSchema, Timestamp } from '#src/contract/wire/shape.ts';
import { withDerivedExamples } from '#src/http/openapi/examples/derived-examples.ts';

const Thing = Type.Object(
  {
    name: Type.String(),
    kind: oneOf(['small', 'large']),
    parts: Type.Array(Type.Integer({ minimum: 3 })),
    owner: nullable(Type.String()),
    madeAt: Timestamp,
    note: Type.Optional(Type.String()),
  },
  { $id: 'Thing' },
);
const made = { name: 'name', kind: 'small', parts: [3], owner: 'owner', madeAt: '2026-01-31T12:00:00.000Z' };

test('an example has every member that an answer always has, each with a value that its schema allows', () => {
  assert.deepEqual(withDerivedExamples([Thing], {}), { Thing: made });
});

test('the example of a page is the last page, with the known example of its items', () => {
  const page = pageSchema('ThingPage', Thing);
  assert.deepEqual(withDerivedExamples([page], {}), { ThingPage: { items: [made], nextCursor: null } });
  const known = { Thing: { name: 'Sales' } };
  assert.deepEqual(withDerivedExamples([page], known), {
    ThingPage: { items: [{ name: 'Sales' }], nextCursor: null },
    ...known,
  });
});

test('an answer with a written example keeps this example', () => {
  const known = { Thing: { name: 'Sales' } };
  assert.deepEqual(withDerivedExamples([Thing], known), known);
  assert.deepEqual(withDerivedExamples([{ ...Thing, examples: [1] }, Type.String()], {}), {});
});

test('a text with a pattern needs a written example', () => {
  const schema = (own: object) => [
    Type.Object({ id: Type.String({ pattern: '^th_[0-9]+$', ...own }) }, { $id: 'Thing' }),
  ];
  assert.throws(() => withDerivedExamples(schema({}), {}), /The schema of id needs `examples`/);
  assert.deepEqual(withDerivedExamples(schema({ examples: ['th_1'] }), {}), { Thing: { id: 'th_1' } });
});
