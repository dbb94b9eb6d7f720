/** The last changes of each author, as followers of a notebook's presence get them. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { LiveNotebook } from '#src/notebook/live-notebook.ts';
import { MAX_AUTHORS, Presence } from '#src/pages/presence.ts';
import type { NotebookPresence } from '#src/wire/presence.ts';
import { RecordingSink } from '../events/recording-sink.ts';

const PLACE = { workspaceId: 'ws_1', userId: 'ada', access: 'edit' } as const;
const PORTS = {
  nameOf: (userId: string) => userId,
  agent: () => null,
  state: () => ({ title: null, status: 'ready' }) as const,
};

/** Returns the ids of the authors, the last one first, as somebody sees them who follows from now on. */
function authorsIn(presence: Presence): readonly string[] {
  const sink = new RecordingSink();
  presence.follow(PLACE, sink, () => {}).close();
  const [, state = ''] = sink.text.trim().split('\n\n');
  const { changes } = JSON.parse(state.slice('data: '.length)) as NotebookPresence;
  return changes.map(({ userId }) => userId);
}

test(`the changes of ${MAX_AUTHORS} authors are remembered, and one more takes the place of the author who has made none for the longest time`, () => {
  const live = { view: { get: () => undefined } } as unknown as LiveNotebook;
  const presence = new Presence(live, PORTS, () => []);
  const change = (userId: string) =>
    presence.changed([{ type: 'set-code', cellId: 'a', code: '1' }], { userId, isAgent: false });
  const users = Array.from({ length: MAX_AUTHORS }, (_, i) => `user-${i}`);
  for (const user of users) change(user);
  assert.deepEqual(authorsIn(presence), users.toReversed());
  change('user-0');
  change('one-more');
  const remembered = authorsIn(presence);
  assert.deepEqual(remembered.slice(0, 2), ['one-more', 'user-0']);
  assert.deepEqual([remembered.length, remembered.includes('user-1')], [MAX_AUTHORS, false]);
});

test('a presence that the last follower has left asks nothing of the server any more', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let asked = 0;
  const agent = () => {
    asked++;
    return null;
  };
  const presence = new Presence({} as LiveNotebook, { ...PORTS, agent }, () => []);
  const following = presence.follow(PLACE, new RecordingSink(), () => {});
  presence.tell();
  t.mock.timers.tick(60_000);
  assert.equal(asked, 2, 'at the beginning, and for the change');
  presence.tell();
  following.close();
  t.mock.timers.tick(60_000);
  assert.equal(asked, 2);
});
