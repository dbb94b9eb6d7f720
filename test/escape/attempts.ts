/** The same attempts, for every user and every fallback. */
import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { Overrides } from '#test/support/server-fixture.ts';
import { obstacle, startAttacked, type User } from './attacked-server.ts';
import { answerOf, attackCell } from './attacks.ts';

/** The attacks that succeed without a layer, according to the start-up line. */
const OPEN: Readonly<Record<string, readonly string[]>> = {
  namespaces: ["a kernel's socket", "another program's socket"],
  seccomp: [
    'be traced by its parent',
    'a child in the name of its parent',
    'a set-uid file',
    'a set-uid file that is made so',
  ],
};
/** The attacks that also succeed if kernels run as root. */
const OPEN_TO_ROOT: Readonly<Record<string, readonly string[]>> = {
  landlock: ['the passwords of the system'],
};

const LIBRARIES = `
import json as _json
import numpy, pandas, matplotlib.pyplot, duckdb, polars
frame = pandas.DataFrame({"a": numpy.arange(3)})
frame.to_parquet("frame.parquet")
matplotlib.pyplot.plot(frame.a); matplotlib.pyplot.savefig("plot.png")
print("ANSWER" + _json.dumps({
    "numpy": float(numpy.linalg.norm([3, 4])), "pandas": int(frame.a.sum()),
    "duckdb": duckdb.sql("select sum(a) from 'frame.parquet'").fetchall()[0][0],
    "polars": polars.read_parquet("frame.parquet")["a"].max(),
}, default=int))
`;

export function tryAll(user: User, fallbacks: readonly string[], settings: Overrides = {}): void {
  const skip = obstacle(user);
  for (const without of fallbacks) {
    const layers = without === '' ? 'with every layer' : `without ${without}`;
    const place = [layers, ...Object.entries(settings).map((setting) => setting.join('='))].join(', ');
    test(`notebooks of ${user} reach nothing of the server ${place}`, { skip: skip ?? false }, async (t) => {
      const server = await startAttacked(t, { user, without, settings });
      const bystander = await openNotebook(server.neighbour, {
        a: 'open("theirs.txt", "w").write("theirs")\n"here"',
      });
      assert.equal((await bystander.run(['a'])).status, 'completed');
      const { uid } = statSync(server.dataDir);
      const runSocket = await listen(t, join(server.dataDir, 'run', 'awaited'), uid);
      const elsewhere = mkdtempSync('/var/tmp/troupe-program-');
      t.after(() => rmSync(elsewhere, { recursive: true }));
      chmodSync(elsewhere, 0o755);
      const programSocket = await listen(t, join(elsewhere, 'socket'), uid);
      chmodSync(programSocket, 0o666);
      const attacker = await openNotebook(server, {
        attacks: attackCell(server, runSocket, programSocket),
        keyring: `keyring = open(${JSON.stringify(server.host.keyFile)}).read()`,
        libraries: LIBRARIES,
        shared: `shared = open(${JSON.stringify(join(server.keyringFile, '../for-all.txt'))}).read()`,
      });

      const answer = await answerOf(attacker, 'attacks');
      const open = Object.keys(answer).filter((name) => answer[name] === null);
      const isRoot = uid === 0 && settings.TROUPE_KERNEL_UID === undefined;
      const expected = [...(OPEN[without] ?? []), ...((isRoot && OPEN_TO_ROOT[without]) || [])];
      assert.deepEqual(open, expected, server.confinement);

      const { status, error } = await attacker.run(['keyring']);
      assert.equal(status, 'failed');
      assert.match(error!.message, /^(PermissionError|FileNotFoundError|OSError): /);
      assert.equal((await attacker.run(['shared'])).status, 'completed');
      const uses = { numpy: 5, pandas: 3, duckdb: 3, polars: 2 };
      assert.deepEqual(await answerOf(attacker, 'libraries'), uses);
      assert.equal((await bystander.run(['a'])).status, 'completed');
      const level = /confined (\w+):/.exec(server.confinement)?.[1];
      assert.equal((await attacker.record()).kernel?.confinement, level);
    });
  }
}

/** Opens a listening socket as the other user, and returns its path. */
async function listen(t: { after(f: () => void): void }, path: string, uid: number): Promise<string> {
  const listener = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => listener.listen(path, resolve));
  chownSync(path, uid, uid);
  t.after(() => listener.close());
  return path;
}
