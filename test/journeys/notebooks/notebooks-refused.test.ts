/** Requests for notebooks that are refused because of their contents. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { cellsOf } from '#test/support/notebook-fixture.ts';
import { problemOf, refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { notebooks } = server.client;

test('a repeated cell id is refused, on create and on PATCH, and nothing changes', async () => {
  const twice = [...cellsOf({ a: '1', b: '2' }), ...cellsOf({ a: '3' })];
  const expected = {
    code: 'duplicate_cell',
    errors: [{ path: '/serialization/cells/2/cell_id', message: 'must be unique within the notebook' }],
  };
  const creating = await problemOf(notebooks.create({ serialization: { cells: twice } }));
  assert.deepEqual({ code: creating.code, errors: creating.errors }, expected);
  const notebook = await notebooks.create({});
  const change = { expectedUpdatedAt: notebook.updatedAt, serialization: { cells: twice } };
  const patching = await problemOf(notebooks.update(notebook.id, change));
  assert.deepEqual({ code: patching.code, errors: patching.errors }, expected);
  assert.deepEqual(await notebooks.get(notebook.id), notebook);
});

test('a PATCH without any configuration, or without expectedUpdatedAt, is refused', async () => {
  const notebook = await notebooks.create({});
  const { id, updatedAt } = notebook;
  assert.equal(
    await refusalOf(notebooks.update(id, { expectedUpdatedAt: updatedAt })),
    '400 invalid_request',
  );
  const { status, body } = await server.request('PATCH', `/api/v3/notebooks/${id}`, {
    body: { variables: {} },
  });
  const { code, errors } = body as { code: string; errors: unknown[] };
  const missing = { path: '/expectedUpdatedAt', message: 'is required' };
  assert.deepEqual([status, code, errors[0]], [400, 'invalid_request', missing]);
  assert.deepEqual(await notebooks.get(id), notebook);
});

test('a cursor that is not the id of a notebook, and a bad limit, are refused', async () => {
  for (const after of ['nb_none', 'run_00000000000000000000000000', 'nb_0000000000000000000000000u', '%00']) {
    assert.equal(await refusalOf(notebooks.list({ after })), '400 invalid_cursor', after);
  }
  for (const limit of [0, 101, -1, 1.5]) {
    assert.equal(await refusalOf(notebooks.list({ limit })), '400 invalid_request', String(limit));
  }
});

test('an unknown member at any place is refused, and the error names the place', async () => {
  const cases: [string, unknown][] = [
    ['/colour', { colour: 1 }],
    ['/id', { id: 'nb_mine' }],
    ['/serialization/colour', { serialization: { colour: 1 } }],
    ['/serialization/app/colour', { serialization: { app: { colour: 1 } } }],
    ['/serialization/cells/0/colour', { serialization: { cells: [{ cell_id: 'a', code: '', colour: 1 }] } }],
  ];
  for (const [path, body] of cases) {
    const answer = await server.request('POST', '/api/v3/notebooks', { body });
    const { code, errors } = answer.body as { code: string; errors: unknown };
    assert.deepEqual(
      { status: answer.status, code, errors },
      { status: 400, code: 'invalid_request', errors: [{ path, message: 'is not expected here' }] },
    );
  }
});

test('a member of a wrong type, a bad slug and a bad variable name are refused', async () => {
  const bodies: unknown[] = [
    null,
    [],
    'text',
    { serialization: null },
    { serialization: { version: 1 } },
    { serialization: { cells: {} } },
    { serialization: { cells: [null] } },
    { serialization: { cells: [{ cell_id: 'a' }] } },
    { serialization: { cells: [{ code: '1' }] } },
    { serialization: { cells: [{ cell_id: '', code: '1' }] } },
    { serialization: { cells: [{ cell_id: 7, code: '1' }] } },
    { serialization: { cells: [{ cell_id: 'a\n', code: '1' }] } },
    { serialization: { cells: [{ cell_id: '__scratch__', code: '1' }] } },
    { serialization: { cells: [{ cell_id: 'a', code: '1', options: [] }] } },
    { datasourceSlugs: 'sales' },
    { datasourceSlugs: ['-sales'] },
    { datasourceSlugs: ['sales', 'sales'] },
    { variables: { '1A': 'x' } },
    { variables: { 'A=B': 'x' } },
    { variables: { A: 1 } },
    { variables: { A: 'a\0b' } },
  ];
  for (const body of bodies) {
    const answer = await server.request('POST', '/api/v3/notebooks', { body: JSON.stringify(body) });
    const { code } = answer.body as { code: string };
    assert.deepEqual([answer.status, code], [400, 'invalid_request'], JSON.stringify(body));
  }
});

test('a text that does not match its pattern or format is refused in words, not with a regular expression', async () => {
  const connection = { kind: 'sqlite', path: 'a.sqlite' };
  const cases: [string, unknown, string, string][] = [
    [
      '/datasources',
      { slug: 'a b', connection },
      '/slug',
      'must consist of letters, digits, dots, underscores and hyphens, and begin with a letter or a digit',
    ],
    [
      '/members',
      { userId: 'a b', role: 'viewer' },
      '/userId',
      'must be 1 to 128 letters, digits, dots, underscores, hyphens and @',
    ],
    [
      '/notebooks',
      { variables: { '1A': '' } },
      '/variables/1A',
      'is not an allowed name: it must consist of letters, digits and underscores, and not begin with a digit',
    ],
    ['/notebooks', { title: 'a\nb' }, '/title', 'must not contain control characters'],
    ['/notebooks', { title: '' }, '/title', 'must not be empty'],
    [
      '/access-tokens',
      { name: 'a', scopes: ['datasource:read'], expiresAt: 'tomorrow' },
      '/expiresAt',
      'must be a time such as 2026-01-31T12:00:00Z',
    ],
  ];
  for (const [route, body, path, message] of cases) {
    const answer = await server.request('POST', `/api/v3${route}`, { body });
    assert.equal(answer.status, 400);
    assert.deepEqual((answer.body as { errors: unknown }).errors, [{ path, message }]);
  }
});
