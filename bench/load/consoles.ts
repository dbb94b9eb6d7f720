/**
 * Consoles that are open on their overview, which asks most: the requests and the stream of the real one, as often, in a
 * thread of its own. No browser draws them, because it would use the processors of the server.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type Client, createClient } from '#src/client/client.ts';
import type { Endpoint } from '../wire.ts';

interface Consoles {
  readonly endpoint: Endpoint;
  readonly count: number;
}

/** Opens consoles. Resolves when each has loaded everything once. */
export async function openConsoles(endpoint: Endpoint, count: number): Promise<{ close(): Promise<void> }> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { endpoint, count } });
  await once(worker, 'message');
  return {
    async close() {
      await worker.terminate();
    },
  };
}

/** What the overview loads, and the time after which it does so again. */
const VIEWS: readonly (readonly [everyMs: number, load: (client: Client) => Promise<unknown>])[] = [
  [2_000, (client) => client.actors({ limit: 1 })],
  [2_000, (client) => client.runs.list({ status: 'running', limit: 6 })],
  [2_000, (client) => client.runs.list({ status: 'failed', order: 'desc', limit: 6 })],
  [2_000, (client) => client.kernels()],
  [3_000, (client) => client.server()],
  [10_000, (client) => client.notebookSessions.list({ status: 'open', order: 'desc', limit: 100 })],
  [10_000, (client) => client.notebookSessions.list({ status: 'open', order: 'desc', limit: 100 })],
];

async function open({ endpoint, count }: Consoles): Promise<void> {
  const { port, token, workspaceId } = endpoint;
  const client = createClient({ baseUrl: `http://127.0.0.1:${port}`, accessToken: token, workspaceId });
  const loaded: Promise<unknown>[] = [];
  for (let i = 0; i < count; i++) {
    void follow(client);
    for (const [everyMs, load] of VIEWS) {
      loaded.push(load(client));
      void repeat(client, everyMs, load);
    }
  }
  await Promise.all(loaded);
  parentPort?.postMessage('loaded');
}

async function follow(client: Client): Promise<void> {
  for await (const _ of client.followActors());
}

async function repeat(
  client: Client,
  everyMs: number,
  load: (client: Client) => Promise<unknown>,
): Promise<void> {
  // Consoles were not opened in the same moment.
  await sleep(Math.random() * everyMs);
  for (;;) {
    await load(client);
    await sleep(everyMs);
  }
}

if (!isMainThread) await open(workerData as Consoles);
