/**
 * uWebSockets.js in its own process: with a fixed response, with only LMDB as its back end, and
 * with subscribers of a clock. The figures are the upper bounds of this machine.
 */

import type { HttpResponse } from 'uWebSockets.js';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { listenOn, loadUws } from '#src/http/uws.ts';
import { TIME_MARK } from './readers.ts';

const FILE = fileURLToPath(import.meta.url);
const BODY_BYTES = 300;
const TICK_MS = 200;

/** The running process. */
export interface RawServer {
  readonly pid: number;
  readonly port: number;
  end(): void;
}

/**
 * Starts the process. Resolves when it listens. GET /fixed has a fixed response, POST /stored stores the body in `store` and
 * flushes it, GET /clock is an event stream of the time, five times per second.
 */
export async function startRawServer(store?: string): Promise<RawServer> {
  const child: ChildProcess = fork(FILE, ['serve', ...(store === undefined ? [] : [store])]);
  const [port] = (await once(child, 'message')) as [number];
  return { pid: child.pid!, port, end: () => child.kill('SIGKILL') };
}

async function serve(store: string | undefined): Promise<void> {
  const uws = await loadUws();
  const app = uws.App();
  const body = Buffer.alloc(BODY_BYTES, 'x');
  app.get('/fixed', (res) => {
    res.writeHeader('content-type', 'application/json');
    res.end(body);
  });
  if (store !== undefined) {
    const put = await openLmdb(store);
    app.post('/stored', (res) => keep(res, put));
  }
  const subscribers = new Set<HttpResponse>();
  app.get('/clock', (res) => {
    res.writeHeader('content-type', 'text/event-stream');
    res.write('\n');
    subscribers.add(res);
    res.onAborted(() => subscribers.delete(res));
  });
  setInterval(() => tell(subscribers), TICK_MS);
  process.on('disconnect', () => process.exit(0)); // the parent has ended
  process.send?.((await listenOn(uws, app, { host: '127.0.0.1', port: 0 })).port);
}

function tell(subscribers: ReadonlySet<HttpResponse>): void {
  const now = (performance.timeOrigin + performance.now()).toFixed(3).padStart(17, '0');
  const frame = Buffer.from(`data: ${TIME_MARK}${now}\n\n`);
  for (const res of subscribers) res.cork(() => res.write(frame));
}

/** Returns a function that stores bytes under a new key and resolves when they are flushed. Writes of one turn share a flush. */
async function openLmdb(path: string): Promise<(bytes: Buffer) => Promise<unknown>> {
  const { open } = await import('lmdb');
  const database = open<Buffer, number>({ path, encoding: 'binary', overlappingSync: false });
  let key = 0;
  return (bytes) => database.put(key++, bytes);
}

function keep(res: HttpResponse, put: (bytes: Buffer) => Promise<unknown>): void {
  const parts: Buffer[] = [];
  let isGone = false;
  res.onAborted(() => {
    isGone = true;
  });
  res.onData((part, isLast) => {
    parts.push(Buffer.from(Buffer.from(part)));
    if (!isLast) return;
    void put(Buffer.concat(parts)).then(() => {
      if (isGone) return;
      res.cork(() => res.writeStatus('201 Created').end('{}'));
    });
  });
}

if (process.argv[1] === FILE && process.argv[2] === 'serve') await serve(process.argv[3]);
