import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { NotebookView } from '#src/notebook/open/view.ts';
import { type RecordParts, sessionRecord } from '#src/notebook/sessions/notebook-session-record.ts';
import { SessionJson } from '#src/notebook/sessions/session-json.ts';
import { open, ready, startSession } from '#test/machines/session-fixture.ts';
import { cellOp, done, verdict } from './kernel-messages.ts';

const CREATED_AT = '2026-01-01T00:00:00.000Z';

test('the JSON of a session is kept until a member of its record changes', (t) => {
  const { json, live, parts } = openSession(t);
  const first = json.of(live, parts());
  assert.equal(json.of(live, parts()), first);
});

test('the JSON of a session shows each change at once', (t) => {
  const { json, live, parts, session } = openSession(t);
  const cell = live.view.get('a')!;
  const inPlace = (change: () => unknown) => () => {
    change();
    return {};
  };
  const changes: Readonly<Record<string, () => Partial<RecordParts>>> = {
    'the state of the session': inPlace(() => session.send(ready)),
    'the time of its last change': () => ({ peek: { ...parts().peek, updatedAt: CREATED_AT } }),
    'the loss of its kernel': () => ({ peek: { ...parts().peek, isLost: true } }),
    'the step of its start': inPlace(() => {
      live.startup = { phase: 'packages', text: 'numpy' };
    }),
    'a note about its kernel': inPlace(() => {
      live.notes = ['another version'];
    }),
    'facts about kernels': () => ({ kernelFacts: { confinement: null, network: 'none' } }),
    'the address of the notebook': () => ({ url: 'https://other.example/nb_1' }),
    'a cell that runs': inPlace(() => live.view.applyCellOp(cellOp('a', { status: 'running' }))),
    'a cell that has run': inPlace(() => live.view.applyVerdicts(done({ a: verdict('success') }))),
    'a cell that failed': inPlace(() => live.view.applyVerdicts(done({ a: verdict('exception') }))),
    code: inPlace(() => live.view.setCode(cell, 'x = 2')),
    'a name': inPlace(() => live.view.setOptions(cell, { name: 'load' })),
    'a disabled cell': inPlace(() => live.view.setOptions(cell, { name: 'load', disabled: true })),
    'a further cell': inPlace(() => live.view.add('c', 'y = 1', {})),
    'another order': inPlace(() => live.view.reorder(['c', 'a'])),
    'a cell less': inPlace(() => live.view.remove('a')),
  };
  let before = textOf(json.of(live, parts()));
  for (const [change, make] of Object.entries(changes)) {
    const changed = make();
    const now = { ...parts(), ...changed };
    const text = textOf(json.of(live, now));
    const record = sessionRecord(now);
    assert.equal(text, JSON.stringify(record), change);
    assert.notEqual(text, before, change);
    before = text;
  }
});

test('long JSON of a record is not kept, and a very long record is returned as an object', (t) => {
  const { json, live, parts } = openSession(t);
  for (let i = 0; i < 200; i++) live.view.add(`cell-${i}`, '', {});
  const first = json.of(live, parts());
  assert.ok(first instanceof Uint8Array);
  assert.notEqual(json.of(live, parts()), first);
  for (let i = 0; i < 9_000; i++) live.view.add(`further-${i}`, '', {});
  assert.deepEqual(json.of(live, parts()), sessionRecord(parts()));
});

function textOf(json: ReturnType<SessionJson['of']>): string {
  assert.ok(json instanceof Uint8Array);
  return Buffer.from(json).toString();
}

/** Opens a session of one cell. `parts` returns the present sources of its record. */
function openSession(t: TestContext) {
  const { session } = startSession(t);
  session.send(open);
  const live = {
    view: new NotebookView([{ cell_id: 'a', code: 'x = 1', options: {} }], CREATED_AT),
    startup: null as RecordParts['shown']['startup'],
    notes: [] as readonly string[],
  };
  const parts = (): RecordParts => ({
    sessionId: 'nb_1',
    peek: {
      snapshot: session.getSnapshot(),
      live: true,
      isLost: false,
      createdAt: CREATED_AT,
      updatedAt: '2026-01-01T00:00:01.000Z',
    },
    shown: live,
    kernelFacts: { confinement: 'namespaces', network: 'open' },
    url: 'https://troupe.example/nb_1',
  });
  return { json: new SessionJson(), live, parts, session };
}
