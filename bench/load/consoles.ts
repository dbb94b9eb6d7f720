/**
 * Consoles that are open on their overview, the view with the most requests. They open the same
 * streams and send the same requests as the real console, as often, in a thread of their own. No
 * browser draws them, because it would use the processors of the server.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type Client, createClient } from '#src/contract/client/client.ts';
import type { Endpoint } from '../wire.ts';

interface Consoles {
  readonly endpoint: Endpoint;
  readonly count: number;
}

/** The bytes and events of all consoles together so far. */
export interface Traffic {
  readonly requests: number;
  readonly frames: number;
  readonly bytes: number;
}

export interface OpenedConsoles {
  traffic(): Promise<Traffic>;
  close(): Promise<void>;
}

/** Opens consoles. Resolves when each has loaded everything once. */
export async function openConsoles(endpoint: Endpoint, count: number): Promise<OpenedConsoles> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { endpoint, count } });
  await once(worker, 'message');
  return {
    async traffic() {
      const answer = once(worker, 'message');
      worker.postMessage('traffic');
      const [traffic] = (await answer) as [Traffic];
      return traffic;
    },
    async close() {
      await worker.terminate();
    },
  };
}

const KERNELS_EVERY_MS = 2_000;
/** A list is loaded again when an item in it has changed, but at most this often. */
const LISTS_GAP_MS = 2_000;
const MAX_LISTED = 6;

const traffic = { requests: 0, frames: 0, bytes: 0 };

async function open({ endpoint, count }: Consoles): Promise<void> {
  const { port, token, workspaceId } = endpoint;
  const baseUrl = `http://127.0.0.1:${port}`;
  const client = createClient({ baseUrl, accessToken: token, workspaceId, fetch: counted });
  await Promise.all(Array.from({ length: count }, () => openOne(client)));
  parentPort?.on('message', () => parentPort?.postMessage(traffic));
  parentPort?.postMessage('loaded');
}

/** Resolves when everything was loaded once. */
async function openOne(client: Client): Promise<void> {
  const loadLists = () =>
    Promise.all([
      client.runs.list({ status: 'running', limit: MAX_LISTED }),
      client.runs.list({ status: 'failed', order: 'desc', limit: MAX_LISTED }),
    ]);
  const loadKernels = () => client.kernels({ limit: MAX_LISTED });
  void followWorkspace(client, loadLists);
  void followServer(client);
  await Promise.all([
    loadLists(),
    loadKernels(),
    client.notebookSessions.list({ status: 'open', order: 'desc', limit: 100 }),
  ]);
  void repeat(loadKernels);
}

async function followWorkspace(client: Client, loadLists: () => Promise<unknown>): Promise<void> {
  let isDue = false;
  let loadedAtMs = Number.NEGATIVE_INFINITY;
  for await (const event of client.followActors({ moves: false })) {
    traffic.frames++;
    if (event.type !== 'actors.counts' || !event.data.moved.includes('run') || isDue) continue;
    isDue = true;
    const waitMs = Math.max(0, loadedAtMs + LISTS_GAP_MS - performance.now());
    setTimeout(() => {
      isDue = false;
      loadedAtMs = performance.now();
      void loadLists();
    }, waitMs);
  }
}

async function followServer(client: Client): Promise<void> {
  for await (const _ of client.followServer()) traffic.frames++;
}

async function repeat(load: () => Promise<unknown>): Promise<void> {
  // Consoles were not opened in the same moment.
  await sleep(Math.random() * KERNELS_EVERY_MS);
  for (;;) {
    await load();
    await sleep(KERNELS_EVERY_MS);
  }
}

const counted: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  traffic.requests++;
  if (response.body === null) return response;
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      traffic.bytes += bytes.byteLength;
      controller.enqueue(bytes);
    },
  });
  return new Response(response.body.pipeThrough(counting), response);
};

if (!isMainThread) await open(workerData as Consoles);
