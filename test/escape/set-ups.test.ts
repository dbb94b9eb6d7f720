// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
// runs alone: it starts many processes, which keep both processors busy
/**
 * Kernels start in every set-up of confinement. This includes later kernels, which come from an
 * init that was made ahead. A set-up that this machine cannot make is skipped; under CI=true that
 * fails, unless the set-up can never be made there.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import type { Overrides } from '#test/support/server-fixture.ts';
import { ORDINARY_UID, obstacle, startAttacked, type User } from './attacked-server.ts';

interface SetUp {
  readonly name: string;
  readonly user: User;
  readonly without?: string;
  readonly settings?: Overrides;
  /** The server's statement about its kernels. */
  readonly confinement: RegExp;
  /** The reason why no machine of this kind can make the set-up; undefined when it can. */
  readonly impossible?: string | undefined;
}

const SESSIONS = 12;
const isRoot = process.getuid?.() === 0;
const needsRoot = isRoot ? undefined : 'it needs root';

const SET_UPS: readonly SetUp[] = [
  {
    name: 'root',
    user: 'this user',
    confinement: /confined (partial|none): .*RUNNING AS ROOT/,
    impossible: needsRoot,
  },
  {
    name: 'root with TROUPE_KERNEL_UID',
    user: 'this user',
    settings: { TROUPE_KERNEL_UID: String(ORDINARY_UID) },
    confinement: new RegExp(`confined \\w+: .*uid ${ORDINARY_UID}`),
    impossible: needsRoot ?? obstacleToNamespaces([]),
  },
  {
    name: 'an ordinary user with user namespaces',
    user: isRoot ? 'an ordinary user' : 'this user',
    confinement: /confined \w+: user\+pid\+mount\+ipc namespaces/,
    impossible: obstacleToNamespaces(['--user', '--map-current-user']),
  },
  {
    name: 'an ordinary user without user namespaces',
    user: isRoot ? 'an ordinary user' : 'this user',
    without: 'namespaces',
    confinement: /confined (partial|none): .*no namespaces/,
  },
];

for (const { name, impossible, ...setUp } of SET_UPS) {
  for (const workers of [1, 3]) {
    const skip = impossible ?? (process.env.CI === 'true' ? undefined : obstacle(setUp.user));
    test(`twelve sessions start one after the other as ${name}, with ${workers} workers`, {
      skip,
    }, async (t) => {
      assert.equal(obstacle(setUp.user), undefined);
      const settings = { ...setUp.settings, TROUPE_WORKERS: String(workers) };
      const server = await startAttacked(t, { ...setUp, settings });
      assert.match(server.confinement, setUp.confinement);
      for (let session = 0; session < SESSIONS; session++) {
        const notebook = await openNotebook(server, { cell: `${session} * 2` });
        assert.equal((await notebook.run(['cell'])).status, 'completed');
      }
      // A kernel that fails to start is started once more, so a single failure would not be
      // noticed.
      assert.equal(server.messages.filter((message) => message === 'a kernel has started').length, SESSIONS);
      assert.ok(!server.messages.includes('a kernel has ended'));
    });
  }
}

/** Returns the reason why the system makes no namespaces of these kinds for the users here; undefined when it makes them. */
function obstacleToNamespaces(kinds: readonly string[]): string | undefined {
  const asWhom = isRoot && kinds.length > 0 ? { uid: ORDINARY_UID, gid: ORDINARY_UID } : {};
  const options = [...kinds, '--pid', '--mount', '--ipc', '--fork'];
  const { status, stderr } = spawnSync('unshare', [...options, 'true'], {
    ...asWhom,
    cwd: '/',
    encoding: 'utf8',
  });
  return status === 0 ? undefined : `the system allows no namespaces: ${stderr}`;
}
