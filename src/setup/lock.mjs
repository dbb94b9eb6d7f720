// Allows one set-up at a time in one installation. The lock is a listening abstract socket: taking it is atomic, and
// the system frees it when its last holder ends. The programs that set-up runs inherit the lock. So after a set-up is
// killed, the next one waits until the npm or pip of the first has ended.
import { createHash } from 'node:crypto';
import { connect, createServer } from 'node:net';
import { say } from './console.mjs';

/** Runs `work(descriptor)` while it holds the lock of `root`. Waits while another process holds it. */
export async function holdingLock(root, work) {
  const name = `\0troupe-setup-${createHash('sha256').update(root).digest('hex')}`;
  let lock = await take(name);
  if (lock === undefined) say('waiting for another set-up of this installation');
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

/** Resolves with the lock, or with undefined when another process holds it. */
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

/** Resolves when the connection to the holder breaks, because it released the lock or ended. */
function untilReleased(name) {
  return new Promise((resolve) => {
    const socket = connect(name);
    socket.on('error', resolve);
    socket.on('close', resolve);
    socket.resume();
  });
}
