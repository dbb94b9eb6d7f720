/** The last changes of each author, as followers of a notebook's presence get them. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { NotebookPresence } from '#src/contract/wire/presence.ts';
import type { LiveNotebook } from '#src/notebook/open/live-notebook.ts';
import { MAX_AUTHORS, MAX_CHANGED_CELLS, PagePresence } from '#src/notebook/pages/presence.ts';
import { RecordingSink } from '#test/runtime/events/recording-sink.ts';

const PLACE = { workspaceId: 'ws_1', userId: 'ada', access: 'edit' } as const;
const PORTS = {
  nameOf: (userId: string) => userId,
  agent: () => null,
  state: () => ({ title: null, status: 'ready', kernelEnd: null }) as const,
};

/** Returns the ids of the authors, the last one first, as somebody sees them who follows from now on. */
function authorsIn(presence: PagePresence): readonly string[] {
  const sink = new RecordingSink();
  presence.follow(PLACE, sink, () => {}).close();
  const [, state = ''] = sink.text.trim().split('\n\n');
  const { changes } = JSON.parse(state.slice('data: '.length)) as NotebookPresence;
  return changes.map(({ userId }) => userId);
}

test(`the changes of ${MAX_AUTHORS} authors are remembered, and a further author replaces the author with the oldest last change`, () => {
  const live = { view: { get: () => undefined } } as unknown as LiveNotebook;
  const presence = new PagePresence(live, PORTS, () => []);
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

test('the presence makes no more requests once its last follower has left', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let asked = 0;
  const agent = () => {
    asked++;
    return null;
  };
  const presence = new PagePresence({} as LiveNotebook, { ...PORTS, agent }, () => []);
  const following = presence.follow(PLACE, new RecordingSink(), () => {});
  presence.tell();
  t.mock.timers.tick(60_000);
  assert.equal(asked, 2, 'at the beginning, and for the change');
  presence.tell();
  following.close();
  t.mock.timers.tick(60_000);
  assert.equal(asked, 2);
});

test('the presence looks only at the last cells of ten thousand changes, and at each cell once', () => {
  let looks = 0;
  const get = (id: string) => {
    looks++;
    return { id, code: `\n# ${id}\n${' '.repeat(1000)}`, options: {} };
  };
  const presence = new PagePresence({ view: { get } } as unknown as LiveNotebook, PORTS, () => []);
  const change = (cellId: string) => ({ type: 'set-code', cellId, code: '' }) as const;
  const changes = Array.from({ length: 10_000 }, (_, i) => change(`cell-${Math.floor(i / 2)}`));
  presence.changed(changes, { userId: 'ada', isAgent: false });
  assert.equal(looks, MAX_CHANGED_CELLS);
  presence.changed(
    Array.from({ length: 10_000 }, () => change('one')),
    { userId: 'ada', isAgent: false },
  );
  assert.equal(looks, MAX_CHANGED_CELLS + 1);
  const sink = new RecordingSink();
  presence.follow(PLACE, sink, () => {}).close();
  const [, state = ''] = sink.text.trim().split('\n\n');
  const { changes: shown } = JSON.parse(state.slice('data: '.length)) as NotebookPresence;
  const last = ['one', ...Array.from({ length: MAX_CHANGED_CELLS - 1 }, (_, i) => `cell-${4999 - i}`)];
  assert.deepEqual(
    shown[0]?.cells,
    last.map((cellId) => ({ cellId, label: `# ${cellId}`, isDeleted: false })),
  );
});

test('the first line of a cell is searched only in the beginning of its code', () => {
  const codes: Readonly<Record<string, string>> = {
    near: `${' \n'.repeat(1000)}x = 1\n`,
    far: `${' \n'.repeat(1e6)}x = 1\n`,
  };
  const get = (id: string) => ({ id, code: codes[id], options: {} });
  const presence = new PagePresence({ view: { get } } as unknown as LiveNotebook, PORTS, () => []);
  const changes = Object.keys(codes).map((cellId) => ({ type: 'set-config', cellId, config: {} }) as const);
  presence.changed(changes, { userId: 'ada', isAgent: false });
  const sink = new RecordingSink();
  presence.follow(PLACE, sink, () => {}).close();
  const [, state = ''] = sink.text.trim().split('\n\n');
  const { changes: shown } = JSON.parse(state.slice('data: '.length)) as NotebookPresence;
  assert.deepEqual(
    shown[0]?.cells.map(({ cellId, label }) => [cellId, label]),
    [
      ['far', ''],
      ['near', 'x = 1'],
    ],
  );
});
