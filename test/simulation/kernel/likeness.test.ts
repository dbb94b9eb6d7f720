import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startTestHost } from '#test/confined/kernel-fixture.ts';
import { type Dialogue, hold } from './dialogue.ts';

test('the scripted kernel answers as a real one', async () => {
  await using host = await startTestHost();
  const program = fileURLToPath(new URL('answers-main.js', import.meta.url));
  const [real, { stdout }] = await Promise.all([
    hold(host),
    promisify(execFile)(process.execPath, [program]),
  ]);
  const scripted = JSON.parse(stdout) as Dialogue;
  for (const [what, answers] of Object.entries(real)) assert.deepEqual(scripted[what], answers, what);
  assert.deepEqual(Object.keys(scripted), Object.keys(real));
});
