import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Role } from '#src/base/caller/role.ts';
import { SCOPES } from '#src/contract/wire/identity.ts';
import { ACTIONS, authorize, reaches } from '#src/people/auth/permissions.ts';
import { principalWith, refusalOf } from './identity-fixture.ts';

const ROLES: readonly Role[] = ['viewer', 'editor', 'owner'];

function allowed(role: Role): string[] {
  const principal = principalWith(role, SCOPES);
  return [...ACTIONS.keys()].filter((action) => {
    try {
      authorize(principal, action);
      return true;
    } catch {
      return false; // refusals are asserted one by one below
    }
  });
}

test('a viewer can read, manage datasources, and manage their own tokens', () => {
  assert.deepEqual(allowed('viewer'), [
    'notebook.read',
    'file.read',
    'package.read',
    'environment.read',
    'session.read',
    'run.read',
    'job.read',
    'agent.read',
    'model.read',
    'datasource.read',
    'datasource.write',
    'datasource.delete',
    'datasource.test',
    'workspace.read',
    'token.read',
    'token.create',
    'token.revoke',
    'mcp.call',
  ]);
});

test('an editor can also write', () => {
  const viewer = new Set(allowed('viewer'));
  assert.deepEqual(
    allowed('editor').filter((action) => !viewer.has(action)),
    [
      'notebook.write',
      'notebook.delete',
      'file.write',
      'package.write',
      'environment.write',
      'session.open',
      'session.close',
      'session.edit',
      'session.interact',
      'session.interrupt',
      'run.submit',
      'run.cancel',
      'run.delete',
      'job.write',
      'hook.read',
      'hook.write',
      'code.execute',
      'agent.open',
      'agent.prompt',
      'agent.close',
      'agent.delete',
      'agent.share',
      'model.test',
      'datasource.create',
      'datasource.share',
    ],
  );
});

test('an owner may do everything', () => {
  assert.deepEqual(allowed('owner'), [...ACTIONS.keys()]);
});

test('a role includes every lower one', () => {
  const table = ROLES.map((role) => ROLES.map((least) => reaches(role, least)));
  assert.deepEqual(table, [
    [true, false, false],
    [true, true, false],
    [true, true, true],
  ]);
});

test('every action except reading workspaces needs a scope, and for datasources a single scope is not enough', () => {
  const free = [...ACTIONS].filter(([, { scopes }]) => scopes.length === 0).map(([action]) => action);
  assert.deepEqual(free, ['workspace.read']);
  for (const scope of SCOPES) {
    const principal = principalWith('owner', [scope]);
    assert.equal(
      refusalOf(() => authorize(principal, 'datasource.read')),
      'missing_scope',
    );
  }
});

for (const [action, { role, scopes }] of ACTIONS) {
  test(`${action} is refused without each of its scopes, and to each role below ${role}`, () => {
    for (const scope of scopes) {
      const without = principalWith(
        'owner',
        SCOPES.filter((held) => held !== scope),
      );
      assert.equal(
        refusalOf(() => authorize(without, action)),
        'missing_scope',
      );
    }
    for (const lower of ROLES.filter((candidate) => !reaches(candidate, role))) {
      assert.equal(
        refusalOf(() => authorize(principalWith(lower, SCOPES), action)),
        'role_too_low',
      );
    }
    authorize(principalWith(role, scopes), action);
  });
}

test('an action that is not in the table is a bug, not a refusal', () => {
  assert.throws(() => authorize(principalWith('owner', SCOPES), 'notebook.burn'), {
    message: 'An action is declared. Broken by: notebook.burn.',
  });
});
