import assert from 'node:assert/strict';
import test from 'node:test';
import { Routes } from './routes.ts';

test('a literal part of a path wins over a parameter, and a parameter over the rest', () => {
  const routes = new Routes<string>();
  for (const pattern of ['/a/:id', '/a/own', '/a/:id/b', '/*', '/files/*']) routes.add(pattern, pattern);
  const found = (path: string) => {
    const match = routes.find(path);
    return [match?.handler, ...(match?.parameters ?? [])];
  };
  assert.deepEqual(found('/a/own'), ['/a/own']);
  assert.deepEqual(found('/a/1'), ['/a/:id', '1']);
  assert.deepEqual(found('/a/own/b'), ['/a/:id/b', 'own']);
  assert.deepEqual(found('/files/x/y'), ['/files/*']);
  assert.deepEqual(found('/other'), ['/*']);
  assert.equal(new Routes<string>().find('/a'), undefined);
});
