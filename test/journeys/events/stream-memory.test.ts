// tier: whole, because it measures memory
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { workersOf } from '#test/support/processes.ts';
import { openStream } from '#test/support/raw-stream.ts';
import { OWNER, SETTINGS } from '#test/support/server-fixture.ts';

const SUBSCRIBERS = 2_000;
/** Each of several workers has the budget of a single process, and a third of the subscribers. */
const BUDGET_MIB = 48 * Number(SETTINGS.TROUPE_WORKERS);
/**
 * The memory of sockets and subscriptions themselves, slack of the heap, and unsent pieces of those that get events.
 */
const MARGIN_MIB = 112;
/** Code that first prints one text which is a large frame, and then lines. */
const CODE = `print("x" * 900_000)
import time
for n in range(200):
    print(f"{n:04}" + "y" * 6_000)
    time.sleep(0.002)
print("the " + "end")`;

test('two thousand subscribers that read nothing take no more memory than their budget', async (t) => {
  const server = await startChildServer(t, {
    TROUPE_STREAM_MEMORY_MB: String(BUDGET_MIB),
  });
  const { id } = await openNotebook(server, { a: CODE });
  const path = `/api/v3/notebook-sessions/${id}/events`;
  const reader = await openStream({ baseUrl: server.baseUrl, owner: OWNER }, path);
  const sockets: Socket[] = [];
  t.after(() => sockets.forEach((socket) => void socket.destroy()));
  for (let n = 0; n < SUBSCRIBERS; n += 100) {
    sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => subscribe(server.baseUrl, path)))));
  }
  const processes = [server, ...workersOf(server.pid)].map(({ pid }) => pid);
  const before = residentMib(processes);
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, residentMib(processes));
  }, 10);
  const { runId } = await server.client.executions.submit(id, { type: 'all' });
  await reader.until('the end');
  const run = await server.client.waitForRun(runId);
  clearInterval(watch);
  assert.equal(run.status, 'completed');
  const printed = printedIn(reader.text);
  const lines = Array.from({ length: 200 }, (_, n) => `${String(n).padStart(4, '0')}${'y'.repeat(6_000)}\n`);
  assert.ok(
    printed === `${'x'.repeat(900_000)}\n${lines.join('')}the end\n`,
    'a reader that reads gets everything',
  );
  t.diagnostic(`from ${Math.round(before)} to ${Math.round(peak)} MiB`);
  assert.ok(peak - before < BUDGET_MIB + MARGIN_MIB, `${peak - before} MiB more`);
  reader.close();
});

function printedIn(stream: string): string {
  const frames = stream.matchAll(/^data: (.*"console-output".*)$/gm);
  return [...frames].map(([, json = '']) => Object(JSON.parse(json)).data.text).join('');
}

/** A subscriber that reads the head of the answer and nothing after it. */
function subscribe(baseUrl: string, path: string): Promise<Socket> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  const headers = `Authorization: Bearer ${OWNER.token}\r\nService-Workspace-Id: ${OWNER.workspaceId}\r\n`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
  return new Promise((resolve) => {
    socket.once('data', () => {
      socket.pause();
      resolve(socket);
    });
  });
}

/** Returns the memory of these processes together, without shared pages of files. */
function residentMib(processes: readonly number[]): number {
  return processes.reduce((sum, pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    const [, kib = '0'] = /^RssAnon:\s+(\d+) kB$/m.exec(status) ?? [];
    return sum + Number(kib) / 1024;
  }, 0);
}
