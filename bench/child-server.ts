/** A server in its own process, and the moment of its first answer. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** The process. */
export interface ChildServer {
  readonly pid: number;
  /** The time of the start, by `performance.now()`. */
  readonly startedAt: number;
  /** Resolves with the time of the first 200 to a GET. If there is none, rejects with the output of the process. */
  answeredAt(path: string): Promise<number>;
  /** Asks the process to end, and kills it when that takes too long. Idempotent. */
  end(): Promise<void>;
}

/** The command of a server. */
export interface ServerCommand {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly port: number;
  /** Whether standard output is passed on to standard error; its other output is shown when it does not start. */
  readonly showsOutput?: boolean;
}

const MAX_START_MS = 120_000;
const MAX_END_MS = 6_000;

/** Starts a server. It ends with this process. */
export function startChildServer({ program, args, cwd, env, port, showsOutput }: ServerCommand): ChildServer {
  const startedAt = performance.now();
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  const note = (chunk: Buffer) => {
    said = (said + chunk.toString('utf8')).slice(-20_000);
  };
  child.stderr.on('data', note);
  if (showsOutput) child.stdout.pipe(process.stderr, { end: false });
  else child.stdout.on('data', note);
  return {
    pid: child.pid!,
    startedAt,
    end: ending(child),
    async answeredAt(path) {
      const deadline = performance.now() + MAX_START_MS;
      // Each try has a connection of its own, because the first ones are refused.
      while (performance.now() < deadline && child.exitCode === null) {
        if (await isAnswered(port, path)) return performance.now();
        await sleep(1);
      }
      throw new Error(`The server did not answer ${path} within ${MAX_START_MS} ms.\n${said}`);
    },
  };
}

/** Returns a port on which nobody listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('There is no free port.');
  return address.port;
}

function ending(child: ChildProcess): () => Promise<void> {
  const exited = once(child, 'exit');
  const kill = () => void child.kill('SIGKILL');
  process.prependOnceListener('exit', kill); // before its folder is removed
  let over: Promise<void> | undefined;
  const end = async () => {
    child.kill('SIGTERM');
    const killTimer = setTimeout(kill, MAX_END_MS);
    await exited;
    clearTimeout(killTimer);
    process.off('exit', kill);
  };
  return () => {
    over ??= end();
    return over;
  };
}

function isAnswered(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`;
    const socket = connect(port, '127.0.0.1', () => socket.write(request));
    socket.once('data', (chunk) => {
      resolve(chunk.includes(' 200 OK'));
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });
}
