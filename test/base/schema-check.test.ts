import assert from 'node:assert/strict';
import test from 'node:test';
import { Type } from 'typebox';
import { SchemaCheck } from '#src/base/json/schema-check.ts';

test('a schema that several checks have is compiled once', () => {
  let looks = 0;
  const schema = new Proxy(Type.Object({ name: Type.String() }), {
    get(target, name) {
      looks++;
      return Reflect.get(target, name) as unknown;
    },
  });
  assert.equal(new SchemaCheck(schema).matches({ name: 'n' }), true);
  assert.ok(looks > 0, 'compiling looks at the schema');
  looks = 0;
  assert.equal(new SchemaCheck(schema).matches({ name: 1 }), false);
  assert.equal(looks, 0);
});
