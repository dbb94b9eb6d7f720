import assert from 'node:assert/strict';
import test from 'node:test';
import { runMachine } from '#machines/run.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { box, put, refusedWith, startBoxes, thingIn, type WORKSPACE } from './boxes.ts';

test('a command that the state takes is answered with the new state', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  const { value, context } = actors.ask(box('a'), put('a hat'));
  assert.deepEqual({ value, context }, { value: 'full', context: { id: 'a', thing: 'a hat', restores: 0 } });
});

test('a command that the state refuses throws the code that the state gives, and changes nothing', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  assert.throws(() => actors.ask(box('a'), { type: 'take' }), refusedWith('session_not_ready', 409));
  actors.ask(box('a'), put('a hat'));
  assert.throws(() => actors.ask(box('a'), put('a rabbit')), refusedWith('session_busy', 409));
  assert.equal(thingIn(actors, 'a'), 'a hat');
});

test('a refusal with an unknown code, or by no state at all, is reported as a bug', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  const isBug = (words: RegExp) => (error: unknown) =>
    error instanceof Error && !(error instanceof AppError) && words.test(error.message);
  assert.throws(
    () => actors.ask(box('a'), { type: 'odd' }),
    isBug(/A statechart refuses with a code of the catalogue\. Broken by: no_such_code/),
  );
  assert.throws(
    () => actors.ask(box('a'), { type: 'nameless' }),
    isBug(/A state takes or refuses each command\. Broken by: ws_1\/box\/a in "empty", with nameless/),
  );
});

test('a command to an actor that never existed is refused as not found', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  assert.throws(() => actors.ask(box('a'), put('a hat')), refusedWith('not_found', 404));
  assert.throws(() => actors.check(box('a'), put('a hat')), refusedWith('not_found', 404));
  assert.deepEqual([actors.peek(box('a')), actors.restore(box('a'))], [undefined, undefined]);
  actors.tell(box('a'), put('a hat'));
  assert.equal(actors.peek(box('a')), undefined);
});

test('a kind of actor that is defined twice is a bug', async (t) => {
  const { store } = await temporaryStore(t);
  const { runtime } = startBoxes(t, store);
  const again = { kind: 'run', machine: runMachine, machineVersion: 1 };
  runtime.define(again);
  assert.throws(() => runtime.define(again), /A kind of actor is defined once\. Broken by: run/);
});

test('actors of one id and two kinds are two actors', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors, bags } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  assert.equal(bags.peek(box('a')), undefined);
  bags.spawn(box('a'), { id: 'a' });
  bags.ask(box('a'), put('a hat'));
  assert.equal(thingIn(actors, 'a'), null);
});

test('checking a command throws its refusal and changes nothing', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  await store.durable();
  actors.check(box('a'), put('a hat'));
  assert.throws(() => actors.check(box('a'), { type: 'take' }), refusedWith('session_not_ready', 409));
  assert.equal(store.durable(), undefined, 'nothing is to be saved');
  assert.equal(thingIn(actors, 'a'), null);
});

test('a fact changes the state that expects it, and no other', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  await store.durable();
  actors.tell(box('a'), { type: 'take' });
  assert.equal(store.durable(), undefined, 'nothing is to be saved');
  actors.tell(box('a'), put('a hat'));
  assert.equal(thingIn(actors, 'a'), 'a hat');
});

test('an event that the chart takes without changing state is not a refusal', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  actors.spawn(box('a'), { id: 'a' });
  assert.equal(actors.ask(box('a'), { type: 'touch' }).value, 'empty');
});

test('actors of one id in two workspaces are two actors', async (t) => {
  const { store } = await temporaryStore(t);
  const { actors } = startBoxes(t, store);
  const other = { ...box('a'), workspaceId: 'ws_2' as typeof WORKSPACE };
  actors.spawn(box('a'), { id: 'a' });
  actors.spawn(other, { id: 'a' });
  actors.ask(other, put('a hat'));
  assert.equal(thingIn(actors, 'a'), null);
});
