// tier: whole, because it kills, fills and restarts servers of several processes
/** A disk that a cell fills and frees again, under load: nothing is lost, nothing restarts, reads continue. */
import assert from 'node:assert/strict';
import { existsSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { fillDisk, noSmallDisk, smallDisk } from '#test/support/store/small-disk.ts';

const CODE = 'x'.repeat(20_000);

const FILL = `
import os
def fill():
    with open('everything', 'wb', buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
try:
    fill()
except OSError as error:
    print(error.errno)
`;

test('a cell that fills the disk stops only writes, and writes continue when the disk has space again', {
  skip: noSmallDisk,
}, async (t) => {
  const disk = smallDisk(t, 96);
  const server = await startChildServer(t, {
    TROUPE_DATA_DIR: join(disk, 'data'),
    TROUPE_DISK_RESERVE_MB: '16',
    TROUPE_DISK_WARN_MB: '40',
  });
  const { client } = server;
  const { id: session } = await openNotebook(server, { a: '1' });
  const endless = await openNotebook(server, { a: 'import time; time.sleep(600)' });
  const running = await client.executions.submit(endless.id, { type: 'all' });
  const doomed = await client.notebooks.create({ serialization: { cells: [cell('a', '1')] } });

  const load = new Load(client);
  t.after(() => load.stop());
  const writing = load.run();
  const { stdout } = await client.code.execute(session, FILL);
  assert.equal(stdout.trim(), '28');
  await load.until(({ refused }) => refused > 20);
  assert.ok(statfsSync(disk).bavail === 0);

  const refused = await client.notebooks.create({ serialization: { cells: [] } }).then(
    () => assert.fail('a full disk took a notebook'),
    (error: unknown) => error,
  );
  assert.ok(refused instanceof ApiError);
  assert.deepEqual([refused.status, refused.code], [507, 'storage_full']);
  assert.match(refused.message, /free disk space/);
  const { ready, warnings = [] } = await client.readiness();
  assert.equal(ready, true);
  assert.match(
    warnings.join(),
    /^The disk is full: 0 MiB are free at .* reads, cancellations and deletions go on/,
  );

  await client.notebooks.delete(doomed.id);
  await client.runs.cancel(running.runId);
  await eventually(
    'the run is cancelled',
    async () => (await client.runs.get(running.runId)).status === 'cancelled',
  );
  assert.equal((await client.notebooks.list({ limit: 1 })).items.length, 1);

  const before = load.created.length;
  const { success } = await client.code.execute(session, "import os; os.remove('everything')");
  assert.equal(success, true);
  await load.until(({ created }) => created.length > before + 20);
  assert.deepEqual((await client.readiness()).warnings ?? [], []);
  load.stop();
  await writing;

  assert.deepEqual(load.unexpected, []);
  assert.ok(load.reads > 40);
  assert.equal(existsSync(`/proc/${server.pid}`), true);
  await server.end('SIGKILL');
  const again = await server.again();
  for (const id of load.created) assert.equal((await again.client.notebooks.get(id)).id, id);
});

test('a server that stops while the disk is full reports that the end of a run is lost, and exits with 1', {
  skip: noSmallDisk,
}, async (t) => {
  const disk = smallDisk(t, 48);
  const server = await startChildServer(t, {
    TROUPE_DATA_DIR: join(disk, 'data'),
    TROUPE_DISK_RESERVE_MB: '0',
    TROUPE_DISK_WARN_MB: '0',
  });
  const notebook = await openNotebook(server, { a: 'import time; time.sleep(600)' });
  const runId = await notebook.submit(['a']);
  const file = fillDisk(disk);
  assert.deepEqual(await server.end('SIGTERM'), { code: 1, signal: null });
  assert.match(
    String(server.log.at(-1)?.msg),
    /changes that the disk did not take are lost; none of them was acknowledged$/,
  );
  rmSync(file);
  const again = await server.again();
  const { status, stale } = await again.client.runs.get(runId);
  assert.deepEqual([status, stale], ['running', true]);
});

/** Creates notebooks and reads them, one after the other. */
class Load {
  readonly created: string[] = [];
  readonly unexpected: unknown[] = [];
  refused = 0;
  reads = 0;
  readonly #client: Client;
  #isOver = false;
  #onStep: (() => void) | undefined;

  constructor(client: Client) {
    this.#client = client;
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      await this.#write();
      const newest = this.created.at(-1);
      if (newest !== undefined) await this.#read(newest);
      this.#onStep?.();
    }
  }

  async until(accepts: (load: Load) => boolean): Promise<void> {
    while (!accepts(this)) {
      await new Promise<void>((resolve) => {
        this.#onStep = resolve;
      });
    }
  }

  stop(): void {
    this.#isOver = true;
  }

  async #write(): Promise<void> {
    try {
      const { id } = await this.#client.notebooks.create({ serialization: { cells: [cell('a', CODE)] } });
      this.created.push(id);
    } catch (error) {
      if (error instanceof ApiError && error.status === 507) this.refused++;
      else this.unexpected.push(error);
    }
  }

  async #read(id: string): Promise<void> {
    try {
      await this.#client.notebooks.get(id);
      this.reads++;
    } catch (error) {
      this.unexpected.push(error);
    }
  }
}

function cell(id: string, code: string) {
  return { cell_id: id, code };
}
