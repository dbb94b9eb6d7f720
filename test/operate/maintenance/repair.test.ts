/** `troupe verify --repair`: damaged records are taken out, or replaced by those of a backup, and nothing else changes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { RepairedRecord } from '#src/operate/maintenance/repair.ts';
import { troupe } from '#test/faces/cli/captured-terminal.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { damage } from '#test/support/store/damage.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

interface Report {
  readonly directory: string;
  readonly records: readonly RepairedRecord[];
}

/**
 * A server that was killed, with a backup. A run and a notebook were damaged after the backup, and
 * another notebook is undamaged.
 */
async function damagedServer(t: TestContext) {
  const server = await startChildServer(t);
  const { client, dataDir } = server;
  const make = (code: string) =>
    client.notebooks.create({ serialization: { cells: [{ cell_id: 'a', code }] } });
  const broken = await make('"this cell breaks"');
  const sound = await make('"this cell stays"');
  const opened = await openNotebook(server, { a: 'print("this was " + "shown once")' });
  const run = await opened.run(['a']);
  const env = { TROUPE_DATA_DIR: dataDir };
  const backup = join(temporaryDirectory(t), 'backup');
  assert.equal((await troupe(['backup', backup], { env })).exitCode, 0);
  await server.end('SIGKILL');
  const file = join(dataDir, 'store', 'data.mdb');
  damage(file, 'this cell breaks');
  damage(file, 'this was shown once');
  const cli = async (...args: string[]) => {
    const { exitCode, out, err } = await troupe(args, { env });
    return { exitCode, out, err };
  };
  return { server, broken, sound, opened, run, backup, cli };
}

test('damaged records are dropped by name, their bytes are kept in a file, and all other records are served', async (t) => {
  const { server, broken, sound, opened, run, cli } = await damagedServer(t);
  const found = await cli('verify', '--json');
  const { damage: lines } = JSON.parse(found.out) as { readonly damage: readonly string[] };
  assert.equal(found.exitCode, 1);
  const repaired = await cli('verify', '--repair', '--json');
  assert.equal(repaired.exitCode, 0, repaired.err);
  const { directory, records } = JSON.parse(repaired.out) as Report;
  assert.deepEqual(
    records.map(({ record, problem }) => `record ${record}: ${problem}`),
    lines,
  );
  assert.ok(records.every(({ outcome }) => outcome === 'dropped'));
  const names = records.map(({ name }) => name);
  for (const name of [`notebook ${broken.id}`, `run ${run.id}`])
    assert.ok(
      names.some((text) => text.startsWith(`${name} of the workspace `)),
      `${name} in ${names.join()}`,
    );
  const kept = records.map(({ copy }) => readFileSync(join(directory, copy), 'latin1')).join('');
  assert.match(kept, /this cell break[^s]/);
  assert.match(kept, /this was shown onc[^e]/);
  assert.deepEqual(JSON.parse(readFileSync(join(directory, 'repaired.json'), 'utf8')), records);
  assert.equal((await cli('verify')).exitCode, 0);
  assert.match((await cli('verify', '--repair')).out, /no record is damaged/);

  const { client } = await server.again();
  assert.equal((await client.readiness()).warnings, undefined);
  await assert.rejects(client.notebooks.get(broken.id), { status: 404 });
  await assert.rejects(client.runs.get(run.id), { status: 404 });
  assert.equal((await client.notebooks.get(sound.id)).id, sound.id);
  const ids = (await client.notebooks.list()).items.map(({ id }) => id);
  assert.ok(ids.includes(sound.id) && ids.includes(opened.id));
  assert.deepEqual((await client.runs.list()).items, []);
  assert.equal((await client.readiness()).warnings, undefined);
});

test('a damaged record is restored from a backup that has it, and only the named record is repaired', async (t) => {
  const { server, broken, run, backup, cli } = await damagedServer(t);
  const { damage: lines } = JSON.parse((await cli('verify', '--json')).out) as {
    readonly damage: readonly string[];
  };
  const key = lines
    .map((line) => /^record (\S+):/.exec(line)?.[1] ?? '')
    .find((text) => text.endsWith(broken.id));
  const unknown = await cli('verify', '--repair', '--record', 'ws_home/notebook/nb_none');
  assert.equal(unknown.exitCode, 1);
  assert.match(unknown.err, /There is no damaged record ws_home\/notebook\/nb_none\. Nothing was changed\./);
  const shown = await cli('verify', '--repair', '--record', key!, '--from', backup);
  assert.match(
    shown.out,
    new RegExp(`^restored: notebook ${broken.id} of the workspace \\S+ \\(.*its checksum differs`),
  );
  assert.match(shown.out, /1 records restored and 0 dropped/);
  assert.equal((await cli('verify')).exitCode, 1, 'the run is damaged still');
  const { client } = await server.again();
  assert.equal((await client.notebooks.get(broken.id)).serialization.cells[0]?.code, '"this cell breaks"');
  await assert.rejects(client.runs.get(run.id), { code: 'record_damaged' });
});

test('a store that a server uses is not repaired', async (t) => {
  const { dataDir } = await startChildServer(t);
  const { exitCode, err } = await troupe(['verify', '--repair'], { env: { TROUPE_DATA_DIR: dataDir } });
  assert.equal(exitCode, 1);
  assert.match(err, /Another Troupe server is using the data directory/);
});
