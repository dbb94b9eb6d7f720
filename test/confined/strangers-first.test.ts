// own kernel host: it looks at the processes and the end of the host
/**
 * Notebook code connects to the sockets of other kernels before these kernels do, where no
 * namespace prevents it. Here kernels are not confined at all, so in every other set-up such code
 * can do at most as much.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openKernel, startTestHost, TestKernel } from './kernel-fixture.ts';

/**
 * Connects to every socket of the server that the system lists, several times, and sends bytes or
 * nothing.
 */
const takeAll = (folder: string) => `
import socket, threading, struct
taken, refused = [], 0
def take(greeting):
    while True:
        with open("/proc/net/unix") as table:
            paths = {line.split()[-1] for line in table if ${JSON.stringify(folder)} in line}
        for path in paths:
            for _ in range(3):
                stranger = socket.socket(socket.AF_UNIX)
                try:
                    stranger.connect(path)
                    stranger.send(greeting)
                except OSError:
                    continue
                taken.append(stranger)
                del taken[:-400]
greetings = [b"", b"x", struct.pack("<IB", 65, 0) + b"0" * 64, struct.pack("<IB", 1 << 27, 0) + b"x" * 100_000]
for greeting in greetings:
    threading.Thread(target=take, args=(greeting,), daemon=True).start()
`;

test('kernels start although notebook code connects to their sockets first', async (t) => {
  const host = await startTestHost({ confinement: 'off' });
  t.after(() => host[Symbol.asyncDispose]());
  const attacker = await openKernel(host, {});
  await attacker.run({ attack: takeAll(host.runDir) });
  for (let round = 0; round < 3; round++) {
    const kernels = Array.from({ length: 4 }, () => new TestKernel(host, {}));
    await Promise.all(kernels.map(({ ready }) => ready));
    const { stdout } = await kernels[0]!.run({ a: 'print("mine")' });
    assert.equal(stdout, 'mine\n');
    for (const { kernel, exited } of kernels) {
      kernel.kill();
      await exited;
    }
  }
  const { stdout } = await attacker.run({ count: 'print(len(taken))' });
  assert.ok(Number(stdout) > 0, 'the attack connects to sockets');
});
