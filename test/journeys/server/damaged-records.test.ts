/** A session with records that the disk has damaged continues without them. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { callCode } from '#test/support/code-call.ts';
import { OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { damage } from '#test/support/store/damage.ts';

const first = await startChildServer(test);
const written = await openNotebook(first, { a: 'print("this was " + "shown once")', b: 'kept = 7' });
const before = await written.run(['a']);
await first.end('SIGKILL');
// The text is in the record of the run and in the record of the cell's output.
damage(join(first.dataDir, 'store', 'data.mdb'), 'this was shown once');
const { client } = await first.again();
const session = await client.notebookSessions.waitUntilReady(written.id);
const notebook = new OpenNotebook(client, written.notebook, written.environmentId, session);

test('the stream of a session whose newest run is damaged leaves that run out', async () => {
  assert.equal(before.status, 'completed');
  const events = await notebook.events();
  assert.deepEqual(events.dataOf('run-status'), []);
  assert.equal((await notebook.run(['b'])).status, 'completed');
  await events.until(({ type, data }) => type === 'run-status' && data.status === 'completed');
});

test('a cell whose saved output is damaged runs, and keeps its kernel', async () => {
  assert.equal((await notebook.run(['b'])).status, 'completed');
  assert.equal((await notebook.run(['a'])).status, 'completed');
  assert.equal((await notebook.run(['a'])).status, 'completed');
  const kept = await callCode(client, notebook.id, 'kept');
  assert.equal(kept.output?.data, "<pre class='text-xs'>7</pre>");
});
