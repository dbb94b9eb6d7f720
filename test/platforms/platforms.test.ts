// tier: whole, because it makes a Debian
// runs alone: it starts many processes, which keep both processors busy
/**
 * The package in a Debian 13 with another Node.js than that of this machine. `npm run platforms` tries more versions. Unlike other
 * tests this one is skipped in CI, too, when the Debian cannot be had: its mirrors are no part of the project.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { DebianTree, keptTree, TreeUnavailable } from './debian-tree.ts';
import { journeysOf, pack } from './journeys.ts';

const NODE = '24';
/** If the downloads of Debian and Node.js take longer, the test is not worth the time that they add to a run. */
const DOWNLOAD_LIMIT_S = 120;

test('on Debian 13 the package installs, serves, completes the first run, and continues after kill -9', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can make a Debian and enter it.');
  const folder = mkdtempSync(join(tmpdir(), 'troupe-platform-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const beganAtMs = performance.now();
  const passedS = () => Math.round((performance.now() - beganAtMs) / 1000);
  const made: string[] = [];
  try {
    const tree = await DebianTree.make(keptTree(), { limitS: DOWNLOAD_LIMIT_S });
    await tree.withNode(NODE, DOWNLOAD_LIMIT_S);
    if (passedS() > DOWNLOAD_LIMIT_S)
      throw new TreeUnavailable(
        `the downloads took ${passedS()} s; the next run finds them in ${keptTree()}.`,
      );
    t.diagnostic(`Debian 13 with Node.js is there (${passedS()} s)`);
    for await (const { journey, seen } of journeysOf(tree, await pack(folder), NODE)) {
      made.push(journey);
      t.diagnostic(`${journey}: ${seen} (${passedS()} s)`);
    }
  } catch (error) {
    if (!(error instanceof TreeUnavailable)) throw error;
    return t.skip(error.message);
  }
  assert.deepEqual(made.slice(-2), ['restart after kill -9', 'troupe doctor']);
});
