// tier: whole, because it kills processes that write
/** The files that maintenance leaves when its process is killed in the middle of its work. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { backUp } from '#src/operate/maintenance/backup.ts';
import { type Ended, Shell } from '#test/faces/cli/troupe-process.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { filledDirectory } from '#test/support/store/filled-directory.ts';

const FILES = 3000;

/**
 * Resolves with a data directory whose files take long enough to copy that the process can be
 * killed before the end.
 */
async function directoryOfManyFiles(t: TestContext): Promise<string> {
  const dataDir = await filledDirectory(t);
  const files = join(dataDir, 'workspaces', 'ws_1', 'files');
  for (let n = 0; n < FILES; n++) writeFileSync(join(files, `f${n}`), `file ${n}`);
  return dataDir;
}

/** Runs `troupe` and kills it as soon as it has begun to copy files. */
async function killWhenCopying(
  shell: Shell,
  args: string[],
  dataDir: string,
  files: () => string | undefined,
) {
  const child = shell.start(args, { env: { TROUPE_DATA_DIR: dataDir } });
  await eventually('files are copied', () => {
    const path = files();
    return path !== undefined && existsSync(path) && readdirSync(path).length > 1;
  });
  child.kill();
  const { exitCode }: Ended = await child.ended;
  assert.equal(exitCode, null, 'it was killed before its end');
}

test('no server starts on the remains of a killed restore, and the next restore completes it', async (t) => {
  const dataDir = await directoryOfManyFiles(t);
  const to = join(dataDir, '..', 'backup');
  await backUp({ dataDir, to });
  const shell = new Shell(t);
  const other = join(dataDir, '..', 'other');
  const files = join(other, 'workspaces', 'ws_1', 'files');
  await killWhenCopying(shell, ['restore', to], other, () => files);
  const left = readdirSync(files).length;
  assert.ok(left < FILES, `${left} files`);
  for (const newStore of ['false', 'true'])
    await assert.rejects(
      startChildServer(t, { TROUPE_DATA_DIR: other, TROUPE_NEW_STORE: newStore }),
      /A restore into .* was interrupted, so it is incomplete\. Run troupe restore again, or empty the directory\./,
    );
  const env = { TROUPE_DATA_DIR: other };
  const { out } = await shell.troupe(['doctor'], { env });
  assert.match(out, /A restore into .* was interrupted/);
  assert.equal(existsSync(join(other, 'store', 'data.mdb')), false);
  await shell.text(['restore', to], { env });
  assert.equal(readdirSync(files).length, FILES + 2);
  assert.deepEqual(readdirSync(join(other, 'store')), ['data.mdb']);
  const { damage, records } = await shell.json<{ damage: string[]; records: number }>(['verify'], { env });
  assert.deepEqual([damage, records], [[], 501]);
  await startChildServer(t, env);
  assert.match((await shell.troupe(['restore', to], { env })).err, /Another Troupe server|exists. A backup/);
});

test('the remains of a killed backup are reported as incomplete, and prevent no later backup', async (t) => {
  const dataDir = await directoryOfManyFiles(t);
  const shell = new Shell(t);
  const [to, env] = [join(shell.cwd, 'backup'), { TROUPE_DATA_DIR: dataDir }];
  const draft = () => {
    const name = readdirSync(shell.cwd).find((entry) => entry.startsWith('backup.partial-'));
    return name === undefined ? undefined : join(shell.cwd, name);
  };
  const files = () => {
    const path = draft();
    return path === undefined ? undefined : join(path, 'workspaces', 'ws_1', 'files');
  };
  await killWhenCopying(shell, ['backup', to], dataDir, files);
  const left = draft()!;
  const verified = await shell.troupe(['verify', left]);
  assert.equal(verified.exitCode, 1);
  assert.match(
    verified.err,
    /is not a complete backup: it is still being made, or the backup was interrupted\. If no backup is being made there, delete/,
  );
  const restored = await shell.troupe(['restore', left], {
    env: { TROUPE_DATA_DIR: join(shell.cwd, 'other') },
  });
  assert.match(restored.err, /has no readable manifest/);
  assert.equal(existsSync(join(shell.cwd, 'other')), false);
  assert.equal((await shell.troupe(['verify', to])).exitCode, 1);
  assert.equal(existsSync(to), false, 'a look at a backup that is missing makes no directory');
  await shell.text(['backup', to], { env });
  assert.deepEqual((await shell.json<{ damage: unknown[] }>(['verify', to])).damage, []);
});

test('the next start removes the copy that a killed compaction has left', async (t) => {
  const dataDir = await filledDirectory(t);
  const copy = join(dataDir, 'store-compacting');
  mkdirSync(copy);
  writeFileSync(join(copy, 'data.mdb'), 'a part of the copy');
  await startChildServer(t, { TROUPE_DATA_DIR: dataDir });
  assert.equal(existsSync(copy), false);
});
