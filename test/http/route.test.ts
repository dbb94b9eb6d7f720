import assert from 'node:assert/strict';
import test from 'node:test';
import Type from 'typebox';
import type { Principal } from '#src/base/caller/principal.ts';
import { ok } from '#src/http/reply/reply.ts';
import { defineRoute, paramNamesOf } from '#src/http/route.ts';
import { docs } from './thing-routes.ts';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(fact?: T) => fact;

test('the types of an exchange follow from the declaration', () => {
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/a/:aId/b/:bId',
    operationId: 'x',
    access: { action: 'a' },
    headers: { 'last-event-id': 'd' },
    query: Type.Object({ limit: Type.Integer(), after: Type.Optional(Type.String()) }),
    body: Type.Object({ name: Type.String() }),
    optionalBody: true,
    handle({ params, headers, query, body, principal }) {
      holds<Same<keyof typeof params, 'aId' | 'bId'>>();
      holds<Same<keyof typeof headers, 'last-event-id'>>();
      holds<Same<typeof query.limit, number>>();
      holds<Same<typeof body, { name: string } | undefined>>();
      holds<Same<typeof principal, Principal>>();
      return ok({});
    },
  });
  const route = defineRoute({
    ...docs,
    method: 'GET',
    path: '/plain',
    operationId: 'y',
    access: 'public',
    handle({ params, body, principal }) {
      holds<Same<keyof typeof params, never>>();
      holds<Same<typeof body, undefined>>();
      holds<Same<typeof principal, undefined>>();
      return ok({});
    },
  });
  assert.deepEqual([route.path, paramNamesOf('/a/:aId/b/:bId')], ['/plain', ['aId', 'bId']]);
});
