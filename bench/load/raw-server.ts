/** A uWebSockets.js route with a fixed response, in its own process: the upper bound of what this machine can do. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { listenOn, loadUws } from '#src/http/uws.ts';

const FILE = fileURLToPath(import.meta.url);
const BODY_BYTES = 300;

/** The running process. */
export interface RawServer {
  readonly pid: number;
  readonly port: number;
  end(): void;
}

/** Starts the process. Resolves when it listens. */
export async function startRawServer(): Promise<RawServer> {
  const child: ChildProcess = fork(FILE, ['serve']);
  const [port] = (await once(child, 'message')) as [number];
  return { pid: child.pid!, port, end: () => child.kill('SIGKILL') };
}

async function serve(): Promise<void> {
  const uws = await loadUws();
  const app = uws.App();
  const body = Buffer.alloc(BODY_BYTES, 'x');
  app.get('/fixed', (res) => {
    res.writeHeader('content-type', 'application/json');
    res.end(body);
  });
  process.send?.(uws.us_socket_local_port(await listenOn(app, '127.0.0.1', 0)));
}

if (process.argv[1] === FILE && process.argv[2] === 'serve') await serve();
