/** Processes that listen on one inherited socket, as the workers of a server do. */
import assert from 'node:assert/strict';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, readFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bindListener } from '#src/base/os/listening-socket.ts';
import { eventually } from '#test/support/processes.ts';

const PROGRAM = fileURLToPath(new URL('../support/shared-socket-process.js', import.meta.url));

interface Shared {
  readonly port: number;
  readonly processes: readonly ChildProcess[];
  /** Closes the descriptor of this process, which does not accept connections itself. */
  close(): void;
}

async function share(t: TestContext, count: number): Promise<Shared> {
  const { descriptor, port } = await bindListener('127.0.0.1', 0);
  let isOpen = true;
  const close = () => {
    if (isOpen) closeSync(descriptor);
    isOpen = false;
  };
  t.after(close);
  assert.equal(await ask(port), 'ECONNREFUSED', 'a bound socket refuses');
  const processes = Array.from({ length: count }, () => {
    const child = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc', descriptor] });
    t.after(() => child.kill('SIGKILL'));
    return child;
  });
  for (const [message] of await Promise.all(processes.map((child) => once(child, 'message'))))
    assert.deepEqual(message, { port });
  return { port, processes, close };
}

/** Resolves with the process that has answered over a new connection; with the code of the error when none has. */
function ask(port: number): Promise<number | string | undefined> {
  return new Promise((resolve) => {
    const asking = request({ port, host: '127.0.0.1', agent: false }, (response) => {
      response.setEncoding('utf8').on('data', (text: string) => resolve(Number(text)));
    });
    asking.on('error', (error: NodeJS.ErrnoException) => resolve(error.code)).end();
  });
}

async function pauseAll(processes: readonly ChildProcess[]): Promise<void> {
  for (const { pid } of processes) process.kill(pid!, 'SIGSTOP');
  const isStopped = ({ pid }: ChildProcess) =>
    /^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'));
  await eventually('all are stopped', () => processes.every(isStopped));
}

/** Resolves when the system has made the connections, which no process has accepted. */
async function connectAll(port: number, count: number): Promise<Promise<string>[]> {
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  return sockets.map(async (socket) => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    let answer = '';
    for await (const chunk of socket) answer += chunk;
    return answer.split('\r\n\r\n')[1] ?? '';
  });
}

test('a process accepts a few connections of a burst in one turn, and leaves the rest to other processes', async (t) => {
  const { port, processes } = await share(t, 1);
  await pauseAll(processes);
  const answers = await connectAll(port, 60);
  processes[0]!.kill('SIGCONT');
  assert.deepEqual(new Set(await Promise.all(answers)), new Set([String(processes[0]!.pid)]));
  const stopped = once(processes[0]!, 'message');
  processes[0]!.send('stop');
  assert.deepEqual(await stopped, [{ most: 4 }, undefined]);
});

test('when a process is killed, the other processes answer its waiting connections', async (t) => {
  const { port, processes } = await share(t, 2);
  const [killed, other] = [processes[0]!, processes[1]!];
  await pauseAll(processes);
  const answers = await connectAll(port, 20);
  killed.kill('SIGKILL');
  await once(killed, 'exit');
  other.kill('SIGCONT');
  assert.deepEqual(new Set(await Promise.all(answers)), new Set([String(other.pid)]));
});

test('when one process stops listening, the socket stays open for the other processes, and the last process closes it', async (t) => {
  const { port, processes, close } = await share(t, 2);
  close();
  for (const [index, child] of processes.entries()) {
    const stopped = once(child, 'message');
    child.send('stop');
    await stopped;
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(port)));
    const expected = index === 0 ? processes[1]!.pid : 'ECONNREFUSED';
    assert.deepEqual(new Set(answers), new Set([expected]));
  }
});
