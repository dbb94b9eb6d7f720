// One set-up at a time in one checkout. The lock is a listening abstract socket: taking it is atomic, and the kernel
// frees it when its last holder ends, however that happens. The programs that set-up runs hold it too, so a set-up
// that was killed does not let the next one begin while its npm or pip is still writing.
import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import { say } from './say.mjs';

/** Runs `work(descriptor)` while holding the lock of `root`; waits for whoever holds it now. */
export async function holdingLock(root, work) {
  const name = `\0troupe-setup-${createHash('sha256').update(root).digest('hex')}`;
  let lock = await take(name);
  if (lock === undefined) say('waiting for another set-up of this checkout');
  while (lock === undefined) {
    await untilReleased(name);
    lock = await take(name);
  }
  try {
    return await work(lock.descriptor);
  } finally {
    await lock.release();
  }
}

/** The lock, or undefined when another process has it. */
function take(name) {
  const waiting = new Set();
  const server = createServer((socket) => waiting.add(socket.on('error', () => {})));
  const release = () =>
    new Promise((resolve) => {
      server.close(resolve);
      for (const socket of waiting) socket.destroy();
    });
  return new Promise((resolve, reject) => {
    server.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error)));
    server.listen(name, () => resolve({ descriptor: server._handle?.fd, release }));
  });
}

/** Resolves when a connection to the holder breaks: it has released the lock, or it has ended. */
function untilReleased(name) {
  return new Promise((resolve) => {
    const socket = connect(name);
    socket.on('error', resolve);
    socket.on('close', resolve);
    socket.resume();
  });
}
