/** Refusals that take something unusual: a notebook that no converter can write, a record that the disk has damaged. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { cellsOf } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { damage } from '#test/support/store/damage.ts';

test('there are separate error codes for damaged records and for notebooks that a format cannot express', async (t) => {
  const first = await startChildServer(t);
  const { client } = first;
  const deep = { serialization: { cells: cellsOf({ deep: `${'-'.repeat(50_000)}1` }) } };
  const { id } = await client.notebooks.create(deep);
  for (const format of ['py', 'ipynb', 'md', 'html'] as const)
    assert.equal(await refusalOf(client.notebooks.export(id, format)), '409 unwritable_notebook', format);

  const text = 'text = "this was written to the disk"';
  const whole = await client.notebooks.create({
    title: 'Damaged',
    serialization: { cells: cellsOf({ a: 'a' }) },
  });
  const marked = await client.notebooks.update(whole.id, {
    expectedUpdatedAt: whole.updatedAt,
    variables: { MARK: text },
  });
  await first.end('SIGKILL');
  damage(join(first.dataDir, 'store', 'data.mdb'), 'this was written to the disk');
  const { client: again } = await first.again();
  assert.equal(await refusalOf(again.notebooks.get(marked.id)), '500 record_damaged');
  assert.equal((await again.notebooks.get(id)).id, id);
  const { items } = await again.notebooks.list();
  assert.ok(items.some((one) => one.id === id));
});
