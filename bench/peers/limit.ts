/** The limits of this machine: kernels without a server (limit_kernel.py), and uWebSockets.js with LMDB alone. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { startRawServer } from '../load/raw-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { plainRequest } from '../wire.ts';
import { PEERS_FOLDER } from './environment.ts';
import { Signals } from './signals.ts';
import type { Contestant, Session, Subject } from './subject.ts';

const HOST_FOLDER = join(PEERS_FOLDER, '..', '..', 'src', 'confined', 'python');
const NOTHING = {
  base_url: {},
  headers: {},
  query_params: {},
  path_params: {},
  cookies: {},
  user: {},
  meta: {},
};

/** Returns the limit of the machine. */
export function limit(python: string): Contestant {
  return {
    name: 'limit',
    title:
      'the limit: a tuned kernel without a server, with one flushed page for a run; uWebSockets.js alone, with LMDB flushed for creates',
    launch: () => launch(python),
  };
}

async function launch(python: string): Promise<Subject> {
  const folder = temporaryFolder('limit');
  const home = folder.path;
  const path = join(home, 'kernels');
  const child = spawn(python, [join(PEERS_FOLDER, 'limit_kernel.py'), path, HOST_FOLDER], {
    cwd: home,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH ?? '', HOME: home },
  });
  const kill = () => void child.kill('SIGKILL');
  process.prependOnceListener('exit', kill);
  const raw = await startRawServer(join(home, 'store'));
  const disk = new FlushedPages(await open(join(home, 'pages'), 'w'));
  const listening = once(child.stdout, 'data');
  const early = once(child, 'exit').then(() => Promise.reject(new Error('limit_kernel.py has ended.')));
  early.catch(() => undefined); // the kill at the end also rejects this promise, when no caller waits any more
  await Promise.race([listening, early]);
  return {
    pid: child.pid!,
    prepare: async (codes) => () => LimitSession.open(path, codes, disk),
    reads: async () => ({ port: raw.port, request: plainRequest('GET', '/fixed'), expect: 200 }),
    creates: async () => ({
      port: raw.port,
      request: plainRequest('POST', '/stored', { cells: [{ cell_id: 'a', code: 'x = 1' }] }),
      expect: 201,
    }),
    clock: { port: raw.port, requests: [plainRequest('GET', '/clock')], pid: raw.pid },
    async end() {
      process.off('exit', kill);
      kill();
      raw.end();
      await disk.close();
      folder.remove();
    },
  };
}

const PAGE = Buffer.alloc(4_096, 'x');
const PAGES = 256;

/** A file of some pages. Sessions that flush at the same time share one flush, as the commits of a store do. */
class FlushedPages {
  readonly #file: FileHandle;
  readonly #allocated: Promise<unknown>;
  #count = 0;
  /** The flush of the present writes, which begins once the running flush has ended. */
  #next: Promise<void> | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(file: FileHandle) {
    this.#file = file;
    this.#allocated = file
      .write(Buffer.concat(Array.from({ length: PAGES }, () => PAGE)), 0)
      .then(() => file.sync());
  }

  /** Writes a page. Resolves when it is on the disk. */
  flush(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      this.#running = this.#write();
      return this.#running;
    });
    return this.#next;
  }

  async close(): Promise<void> {
    await this.#running.catch(() => undefined); // its caller has the error
    await this.#file.close();
  }

  async #write(): Promise<void> {
    await this.#allocated;
    await this.#file.write(PAGE, 0, PAGE.length, (this.#count++ % PAGES) * PAGE.length);
    await this.#file.datasync();
  }
}

class LimitSession implements Session {
  readonly #socket: Socket;
  readonly #disk: FlushedPages;
  readonly #codes: readonly string[];
  readonly #signals = new Signals();
  #rest = Buffer.alloc(0);
  #pid = 0;
  #received = 0;

  private constructor(socket: Socket, codes: readonly string[], disk: FlushedPages) {
    this.#socket = socket;
    this.#disk = disk;
    this.#codes = codes;
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => this.#signals.give('lost', performance.now()));
  }

  static async open(path: string, codes: readonly string[], disk: FlushedPages): Promise<LimitSession> {
    const socket = connect(path);
    const session = new LimitSession(socket, codes, disk);
    await session.#signals.next('ready');
    const cells = codes.map((code, i) => ({ cellId: `c${i}`, code }));
    await session.#command('create-notebook', {
      executionRequests: cells.map((cell) => ({ ...cell, request: null })),
      cellIds: cells.map(({ cellId }) => cellId),
      setUiElementValueRequest: { type: 'update-ui-element', objectIds: [], values: [], token: 't' },
      autoRun: false,
      request: null,
    });
    return session;
  }

  run(cell?: number): Promise<number> {
    const all = this.#codes.map((_, i) => i).filter((i) => cell === undefined || i === cell);
    const cellIds = all.map((i) => `c${i}`);
    return this.#command('execute-cells', { cellIds, codes: all.map((i) => this.#codes[i]), request: null });
  }

  flush(): Promise<void> {
    return this.#disk.flush();
  }

  call(code: string): Promise<number> {
    return this.#command('execute-scratchpad', {
      code,
      runId: 'bench',
      notebookCells: [],
      cellOutputs: { output: {}, console_outputs: {} },
      request: { ...NOTHING, url: { path: '/api/kernel/execute' } },
    });
  }

  printed(text: string): Promise<number> {
    return this.#signals.next(`print ${text}`);
  }

  interrupt(): void {
    process.kill(this.#pid, 'SIGINT');
  }

  async idle(): Promise<void> {
    // `run` waits for the kernel.
  }

  lost(): Promise<number> {
    return this.#signals.next('lost');
  }

  collect(): () => number {
    this.#received = 0;
    return () => this.#received;
  }

  async close(): Promise<void> {
    this.#socket.destroy();
  }

  #command(type: string, fields: object): Promise<number> {
    const body = Buffer.from(JSON.stringify({ type, ...fields }));
    const head = Buffer.alloc(4);
    head.writeUInt32LE(body.length);
    const done = this.#signals.next('done');
    this.#socket.write(Buffer.concat([head, body]));
    return done;
  }

  #take(chunk: Buffer): void {
    const at = performance.now();
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= 4 && bytes.length >= 4 + bytes.readUInt32LE(0)) {
      const end = 4 + bytes.readUInt32LE(0);
      this.#message(bytes.toString('latin1', 4, end), at);
      bytes = bytes.subarray(end);
    }
    this.#rest = Buffer.from(bytes);
  }

  #message(text: string, at: number): void {
    if (text.startsWith('{"op":"done"')) this.#signals.give('done', at);
    else if (text.startsWith('{"op": "ready"')) {
      this.#pid = (JSON.parse(text) as { pid: number }).pid;
      this.#signals.give('ready', at);
    } else {
      for (const waited of this.#signals.names()) {
        if (waited.startsWith('print ') && text.includes(waited.slice(6))) this.#signals.give(waited, at);
      }
      if (text.length > 1_000) this.#received += text.split('x').length - 1;
    }
  }
}
