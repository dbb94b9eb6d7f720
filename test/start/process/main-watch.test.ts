/** The watch of a server that is one process, in child processes with shorter times. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import test, { type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('./watched-process.js', import.meta.url));

async function start(t: TestContext): Promise<ChildProcess> {
  const child = fork(PROGRAM, [], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  t.after(() => child.kill('SIGKILL'));
  await once(child, 'message');
  return child;
}

/** Lets the loop of a process stop turning, and resolves with its log once the watch has ended it. */
async function ended(child: ChildProcess, how: 'spin' | 'sleep'): Promise<Record<string, string>> {
  const log = text(child.stdout!);
  const exit = once(child, 'exit');
  child.send(how);
  assert.deepEqual(await exit, [null, 'SIGKILL']);
  return JSON.parse(await log) as Record<string, string>;
}

test('a process whose loop does not turn is ended, and its log names the place in the program', async (t) => {
  const { level, msg, stack } = await ended(await start(t), 'spin');
  assert.equal(level, 'fatal');
  assert.match(msg ?? '', /ends; everything that it has acknowledged is stored/);
  assert.match(stack ?? '', /at spinForever \(.*watched-process\.(?:ts|js):\d+/);
});

test('a process that sleeps for ever is ended, too', async (t) => {
  const { level } = await ended(await start(t), 'sleep');
  assert.equal(level, 'fatal');
});

test('a process that was stopped for longer than the limit goes on', async (t) => {
  const child = await start(t);
  child.kill('SIGSTOP');
  // For the time of the limit: another process is ended by its watch meanwhile.
  await ended(await start(t), 'spin');
  child.kill('SIGCONT');
  for (let n = 0; n < 3; n++) {
    child.send(`hello ${n}`);
    assert.deepEqual((await once(child, 'message'))[0], `hello ${n}`);
  }
  await ended(await start(t), 'sleep'); // ten further looks
  assert.equal(child.exitCode, null);
  assert.equal(child.signalCode, null);
});
