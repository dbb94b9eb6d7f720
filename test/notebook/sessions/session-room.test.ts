/** The room for sessions: people come before work that nobody waits for. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { SessionRoom } from '#src/notebook/sessions/session-room.ts';

const FIRST = 'ws_1' as WorkspaceId;
const SECOND = 'ws_2' as WorkspaceId;
const FULL = { code: 'at_capacity' };
const OVER = { code: 'quota_exceeded' };

test('jobs take no room for ten seconds after a limit has refused a person, and people take it', (t) => {
  const { room, setOpen, later } = roomOf(t, { server: 1 });
  setOpen([FIRST]);
  assert.throws(() => room.admit(SECOND, 'ada'), FULL);
  setOpen([]);
  assert.throws(() => room.admitAfterPeople(FIRST, 'grace'), FULL);
  room.admit(SECOND, 'ada');
  later(9999);
  assert.throws(() => room.admitAfterPeople(FIRST, 'grace'), FULL);
  later(1);
  room.admitAfterPeople(FIRST, 'grace');
});

test('a person who was refused by the limit of a workspace holds up jobs of that workspace alone', (t) => {
  const { room, setOpen } = roomOf(t, { workspace: 1 });
  setOpen([FIRST]);
  assert.throws(() => room.admit(FIRST, 'ada'), OVER);
  setOpen([]);
  assert.throws(() => room.admitAfterPeople(FIRST, 'grace'), FULL);
  room.admitAfterPeople(SECOND, 'grace');
});

test('jobs that are refused hold up nobody', (t) => {
  const { room, setOpen } = roomOf(t, { server: 1 });
  setOpen([FIRST]);
  assert.throws(() => room.admitAfterPeople(FIRST, 'grace'), FULL);
  setOpen([]);
  room.admitAfterPeople(SECOND, 'ada');
});

function roomOf(t: TestContext, { server = 0, workspace = 0 }) {
  let nowMs = 1_000_000;
  t.mock.method(performance, 'now', () => nowMs);
  let open: readonly WorkspaceId[] = [];
  const room = new SessionRoom(
    { maxSessions: server, limitOf: (_, name) => (name === 'sessions' ? workspace : 0) },
    {
      residentsOfAll: () =>
        open.map((workspaceId) => ({ workspaceId, kind: 'notebook-session', id: 'nb_1' })),
      openerOf: () => undefined,
    },
  );
  return {
    room,
    setOpen(workspaces: readonly WorkspaceId[]) {
      open = workspaces;
    },
    later(ms: number) {
      nowMs += ms;
    },
  };
}
