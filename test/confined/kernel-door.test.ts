/** Admission of the connection of a kernel host's child, while other processes of the same user connect, too. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { loadPeerProcess, type PeerProcess, UNKNOWN_PEERS } from '#src/base/os/peer-process.ts';
import { framedParts } from '#src/confined/processes/frame-decoder.ts';
import { KernelDoor } from '#src/confined/processes/kernel-door.ts';
import { afterTurns } from '#test/support/after-turns.ts';

const TOKEN = 'a'.repeat(64);
const greetingOf = (token: string) => Buffer.concat(framedParts(0, [Buffer.from(token)]));
const GREETING = greetingOf(TOKEN);
/** A pid of no process here. */
const OTHER_PID = 2 ** 22 + 1;

async function openDoor(t: TestContext, peers: PeerProcess = UNKNOWN_PEERS) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-door-'));
  const path = join(folder, 's');
  const admitted: { readonly socket: Socket; readonly rest: string }[] = [];
  let onAdmitted = () => {};
  const isAdmitted = new Promise<void>((resolve) => {
    onAdmitted = resolve;
  });
  const door = new KernelDoor(TOKEN, peers, (socket, rest) => {
    admitted.push({ socket, rest: rest.toString() });
    onAdmitted();
  });
  t.after(() => {
    door[Symbol.dispose]();
    for (const { socket } of admitted) socket.destroy();
    rmSync(folder, { recursive: true });
  });
  await door.listen(path);
  const guest = (...bytes: readonly Buffer[]) => {
    const socket = connect(path).on('error', () => {});
    t.after(() => socket.destroy());
    for (const piece of bytes) socket.write(piece);
    return socket;
  };
  return { door, path, admitted, isAdmitted, guest };
}

/** `once` would reject with an error that comes before. */
const closed = (socket: Socket) =>
  new Promise<void>((resolve) => (socket.closed ? resolve() : socket.on('close', () => resolve())));

test('the path is removed once the child has connected, and every other connection is closed', async (t) => {
  const { door, path, admitted, isAdmitted, guest } = await openDoor(t);
  const others = [guest(), guest(Buffer.from([1]))];
  await Promise.all(others.map((socket) => once(socket, 'connect')));
  door.expect(OTHER_PID);
  guest(GREETING, Buffer.from('first'));
  await isAdmitted;
  assert.equal(existsSync(path), false);
  await Promise.all(others.map(closed));
  assert.equal(admitted.length, 1);
});

test('a token that arrives in single bytes is read, and the bytes after it are passed on', async (t) => {
  const { door, admitted, isAdmitted, guest } = await openDoor(t);
  door.expect(OTHER_PID);
  const child = guest();
  for (const byte of GREETING.subarray(0, -1)) {
    child.write(Buffer.from([byte]));
    await nextTurn();
  }
  child.write(Buffer.concat([GREETING.subarray(-1), Buffer.from('and more')]));
  await isAdmitted;
  assert.equal(admitted[0]?.rest, 'and more');
});

for (const [name, greeting] of [
  ['another token of the same length', greetingOf('b'.repeat(64))],
  ['a frame of another size', Buffer.concat([greetingOf('a'), greetingOf(TOKEN)])],
  ['a megabyte', Buffer.alloc(2 ** 20)],
] as const) {
  test(`a connection that begins with ${name} is closed, and the child can still connect`, async (t) => {
    const { door, admitted, isAdmitted, guest } = await openDoor(t);
    door.expect(OTHER_PID);
    await closed(guest(greeting));
    assert.equal(admitted.length, 0);
    guest(GREETING);
    await isAdmitted;
  });
}

test('no connection is admitted before the kernel host has reported the process', async (t) => {
  const { door, admitted, isAdmitted, guest } = await openDoor(t);
  const child = guest(GREETING);
  await once(child, 'connect');
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.equal(admitted.length, 0);
  door.expect(OTHER_PID);
  await isAdmitted;
});

test('a process other than the reported one is refused even with the right token', async (t) => {
  const { door, admitted, guest } = await openDoor(t, await loadPeerProcess());
  const early = guest(GREETING);
  await once(early, 'connect');
  door.expect(OTHER_PID);
  await closed(early);
  await closed(guest(GREETING));
  assert.equal(admitted.length, 0);
});

test('a reported process is recognised by the credentials of its socket', async (t) => {
  const { door, isAdmitted, guest } = await openDoor(t, await loadPeerProcess());
  door.expect(process.pid);
  guest(GREETING);
  await isAdmitted;
});

test('a connection that sends no greeting ends after ten seconds, and does not keep a child from connecting', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { door, isAdmitted, guest } = await openDoor(t);
  const silent = Array.from({ length: 300 }, () => guest());
  let gone = 0;
  for (const socket of silent) socket.on('close', () => gone++);
  await once(silent.at(-1)!, 'connect');
  await afterTurns('the connections beyond the limit are gone', () => gone >= 300 - 32);
  t.mock.timers.tick(10_000);
  await Promise.all(silent.map(closed));
  door.expect(OTHER_PID);
  guest(GREETING);
  await isAdmitted;
});
