/** When the files of a workspace are counted again before a request is refused. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import type { WorkspaceId } from '#src/base/ids.ts';
import { FileQuota } from '#src/workspace/files/file-quota.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
/** Ten times as long is longer than a request waits for the next count. */
const SLOW_COUNT_MS = 150;

/** A quota whose files are as many as they were said to be last. A count of them waits for other work of the machine. */
function open(max: number) {
  let entries = max;
  const count = async () => {
    await pause(SLOW_COUNT_MS); // the time that the count lasts
    return { bytes: 0, entries, isComplete: true };
  };
  const quota = new FileQuota({ maxOf: () => ({ bytes: 0, entries: max }), count });
  const setEntries = (now: number) => {
    entries = now;
  };
  return { quota, setEntries };
}

test('a slow count of few files does not delay the next one, so files that were deleted meanwhile make room', async () => {
  const { quota, setEntries } = open(3);
  assert.equal((await quota.usage(WORKSPACE)).entries, 3);
  setEntries(2);
  using charge = quota.charge(WORKSPACE);
  await charge.file(undefined);
});

test('a slow count of many files delays the next one for ten times its duration', async () => {
  const { quota, setEntries } = open(1_000);
  assert.equal((await quota.usage(WORKSPACE)).entries, 1_000);
  setEntries(2);
  using charge = quota.charge(WORKSPACE);
  await assert.rejects(charge.file(undefined), { code: 'file_quota_exceeded' });
});
