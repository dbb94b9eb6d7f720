/** Kernels that do not read the messages sent to them. */
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { MAX_CALL_BYTES } from '#src/confined/processes/kernel/call-window.ts';
import { FORGE } from '#test/support/forged-frames.ts';
import { eventually } from '#test/support/processes.ts';
import { openKernel, startTestHost, type TestHost, type TestKernel } from './kernel-fixture.ts';

const MIB = 2 ** 20;

let host: TestHost;
before(async () => {
  host = await startTestHost();
});
after(() => host[Symbol.asyncDispose]());

/** Code that keeps the interpreter, also while it calls the library, so that the thread that reads frames never runs. */
const KEEP_INTERPRETER = `
import ctypes, sys
sys.setswitchinterval(1_000_000)
library = ctypes.PyDLL(None)`;

const callsOf = ({ messages }: TestKernel) => messages.filter(({ op }) => op === 'kernel-call').length;

test('a kernel that asks and never reads is read no further, and costs a bounded amount of memory', async () => {
  const code = `${KEEP_INTERPRETER}
call = frame(dict(op="kernel-call", id=1, method="describe", slug="x" * 2**17))
for _ in range(400):
    rest = call
    while rest:
        rest = rest[library.write(kernel_socket.fileno(), rest, len(rest)):]`;
  const asking = await openKernel(host, { f: FORGE, g: code });
  await asking.run(['f']);
  const { kernel } = asking;
  const answer = ['"', Buffer.alloc(MIB, 'y'), '"'];
  let answered = 0;
  let mostBytes = 0;
  const ended = asking.run(['g']).catch((error: unknown) => error);
  // Until the kernel is full, or has asked everything.
  while (kernel.queuedBytes <= MAX_CALL_BYTES && answered < 400) {
    await nextTurn(); // looks after each turn, so that few answers are given at once
    for (; answered < callsOf(asking); answered++) kernel.answerCall(1, answer);
    mostBytes = Math.max(mostBytes, kernel.queuedBytes);
  }
  const asked = callsOf(asking);
  for (let turn = 0; turn < 500; turn++) await nextTurn();
  // The question that was being read when the kernel was full may still come.
  assert.ok(callsOf(asking) <= asked + 2, `${callsOf(asking)} calls, and ${asked} when the kernel was full`);
  assert.ok(mostBytes < MAX_CALL_BYTES + 32 * MIB, `${mostBytes} bytes`);
  kernel.kill();
  await asking.exited;
  await ended;
  assert.equal(kernel.queuedBytes, 0);
});

/** Returns a kernel whose code keeps it from reading until `goOn` is called. */
async function openBusyKernel() {
  const [begun, end] = [
    join(host.work, `${performance.now()}-begun`),
    join(host.work, `${performance.now()}-end`),
  ];
  const code = `${KEEP_INTERPRETER}
open(${JSON.stringify(begun)}, "w").close()
while library.access(${JSON.stringify(end)}.encode(), 0):
    library.usleep(10_000)
sys.setswitchinterval(0.005)`;
  const busy = await openKernel(host, { a: code });
  const ran = busy.run(['a']);
  await eventually('the cell runs', () => existsSync(begun));
  const goOn = async () => {
    writeFileSync(end, '');
    await ran;
  };
  return { busy, kernel: busy.kernel, goOn };
}

test('a kernel that does not read gets only the latest request for completions once it goes on', async () => {
  const { busy, kernel, goOn } = await openBusyKernel();
  const document = `#${'x'.repeat(MIB)}\nval`;
  const answered: string[] = [];
  const isLast = busy.next((message) => {
    if (message.op === 'completion-result') answered.push(message.completionId);
    return message.op === 'completion-result' && message.completionId === '60';
  });
  kernel.complete({ id: '1', document, cellId: 'a' });
  await eventually('the kernel does not read', () => kernel.queuedBytes > 0);
  for (let id = 2; id <= 60; id++) {
    kernel.complete({ id: String(id), document, cellId: 'a' });
    for (let turn = 0; turn < 20; turn++) await nextTurn();
    assert.ok(kernel.queuedBytes <= 2 * document.length, `${kernel.queuedBytes} bytes`);
  }
  await goOn();
  await isLast;
  assert.ok(answered.length <= 2, `${answered}`);
  await eventually('everything is taken', () => kernel.queuedBytes === 0);
  kernel.kill();
});

test('pages that come and go while a kernel does not read wait in a bounded list, and the latest pages get their state', async () => {
  const { busy, kernel, goOn } = await openBusyKernel();
  kernel.complete({ id: '1', document: `#${'x'.repeat(MIB)}`, cellId: 'a' });
  await eventually('the kernel does not read', () => kernel.queuedBytes > 0);
  const pages: number[] = [];
  const isLast = busy.next((message) => {
    if (message.op === 'bridge-page-state' && !message.isOver) pages.push(message.page);
    return message.op === 'bridge-page-state' && message.isOver && pages.at(-1) === 5000;
  });
  const before = kernel.queuedBytes;
  for (let page = 1; page <= 5000; page++) kernel.follow(page);
  assert.equal(kernel.queuedBytes, before);
  await goOn();
  await isLast;
  assert.deepEqual(
    pages,
    Array.from({ length: 256 }, (_, index) => 4745 + index),
  );
  kernel.kill();
});
