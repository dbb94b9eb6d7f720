/** marimo's own server, driven as its front end and its agents drive it: sessions over a WebSocket, orders over HTTP. */
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { freePort, startChildServer } from '../child-server.ts';
import { runCommand } from '../commands.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { expected, plainRequest, Wire } from '../wire.ts';
import { jupyterFiles, notebookFile } from './notebook-files.ts';
import { Signals } from './signals.ts';
import type { Contestant, Repeated, Session, Subject } from './subject.ts';
import { upgradeBytes, WebSocketLine } from './websocket.ts';

/** Names of the messages that are read; of `cell-op` only the printed text. */
const READY = 'kernel-ready';
const ENDED = 'completed-run';
const DIED = 'banner';
const CELL = 'cell-op';
const MESSAGE_NAME = /^\{"op": "([a-z-]+)"/;
/** The end of a streamed answer. */
const LAST_CHUNK = '0\r\n\r\n';

/** Returns marimo's server as it is shipped. */
export function marimo(python: string): Contestant {
  return { name: 'marimo', title: "marimo's own server, as shipped", launch: () => launch(python) };
}

/** A server of marimo, and the folder of its notebooks. */
export interface RunningMarimo {
  readonly pid: number;
  readonly port: number;
  readonly home: string;
  readonly firstAnswerMs: number;
  end(): Promise<void>;
}

/** Starts marimo's server with an empty folder. Resolves once it answers. */
export async function startMarimo(python: string): Promise<RunningMarimo> {
  const folder = temporaryFolder('marimo');
  const home = folder.path;
  const port = await freePort();
  const child = startChildServer({
    program: python,
    args: [
      ...['-m', 'marimo', '--yes', 'edit', '--headless', '--no-token', '--skip-update-check', '--no-sandbox'],
      ...['--no-skew-protection', '--host', '127.0.0.1', '--port', String(port), home],
    ],
    cwd: home,
    env: { PATH: process.env.PATH ?? '', HOME: home },
    port,
  });
  const end = async () => {
    await child.end();
    folder.remove();
  };
  try {
    const firstAnswerMs = (await child.answeredAt('/health')) - child.startedAt;
    return { pid: child.pid, port, home, firstAnswerMs, end };
  } catch (error) {
    await end();
    throw error;
  }
}

async function launch(python: string): Promise<Subject> {
  const { pid, port, home, firstAnswerMs, end } = await startMarimo(python);
  const server = new MarimoServer(port, home);
  const command = (...args: string[]) =>
    runCommand(python, ['-m', 'marimo', '--yes', ...args], {
      cwd: home,
      env: { PATH: process.env.PATH ?? '', HOME: home },
    });
  return {
    pid,
    firstAnswerMs,
    editsCells: true,
    async runFile(codes) {
      writeFileSync(join(home, 'commands.py'), notebookFile(codes));
      return () => command('export', 'html', 'commands.py', '-o', 'commands.html', '-f');
    },
    async convertFiles(count) {
      const files = jupyterFiles(home, count);
      return async () => {
        for (const file of files) await command('convert', file, '-o', `${file}.py`);
      };
    },
    exportPage: (codes) => server.exportPage(codes),
    prepare: async (codes) => server.prepare(codes),
    reads: () => server.reads(),
    creates: async () => server.creates(),
    subscription: (session, count) => server.subscription(session as MarimoSession, count),
    end,
  };
}

class MarimoServer {
  readonly port: number;
  readonly #home: string;
  #notebooks = 0;
  #viewers = 0;

  constructor(port: number, home: string) {
    this.port = port;
    this.#home = home;
  }

  prepare(codes: readonly string[]): () => Promise<MarimoSession> {
    const number = this.#notebooks++;
    const file = join(this.#home, `notebook${number}.py`);
    writeFileSync(file, notebookFile(codes));
    return () => MarimoSession.open(this, file, `s_bench${number}`, codes);
  }

  async exportPage(codes: readonly string[]): Promise<() => Promise<void>> {
    const session = await this.prepare(codes)();
    await session.run();
    const body = { download: false, files: [], includeCode: true };
    return () => session.post('/api/export/html', body);
  }

  async reads(): Promise<Repeated> {
    const { id } = await this.prepare(['x = 1', 'x + 1'])();
    const request = plainRequest('POST', '/api/kernel/read_code', {}, `marimo-session-id: ${id}\r\n`);
    return { port: this.port, request, expect: 200 };
  }

  creates(): Repeated {
    const boundary = 'bench-boundary';
    const part = (name: string, value: string) =>
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const file =
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="made00000000.py"\r\n` +
      `Content-Type: text/x-python\r\n\r\n${notebookFile(['x = 1'])}\r\n`;
    const body = `${part('path', this.#home)}${part('type', 'notebook')}${part('name', 'made00000000.py')}${file}--${boundary}--\r\n`;
    const request = Buffer.from(
      `POST /api/files/create HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: multipart/form-data; boundary=${boundary}\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    return { port: this.port, request, expect: 200, numberAt: request.indexOf('00000000') };
  }

  /** Viewers have ids of their own: a viewer with the id of the session would take over the session. */
  subscription({ file }: MarimoSession, count: number) {
    const path = `&file=${encodeURIComponent(file)}&kiosk=true`;
    const requests = Array.from({ length: count }, () =>
      upgradeBytes(this.port, `/ws?session_id=s_viewer${this.#viewers++}${path}`),
    );
    return { port: this.port, requests };
  }
}

class MarimoSession implements Session {
  readonly id: string;
  readonly file: string;
  readonly #server: MarimoServer;
  readonly #codes: readonly string[];
  readonly #signals = new Signals();
  #cellIds: readonly string[] = [];
  #line: WebSocketLine | undefined;
  #wire: Wire | undefined;
  #received = 0;

  private constructor(server: MarimoServer, file: string, id: string, codes: readonly string[]) {
    this.#server = server;
    this.file = file;
    this.id = id;
    this.#codes = codes;
  }

  static async open(server: MarimoServer, file: string, id: string, codes: readonly string[]) {
    const session = new MarimoSession(server, file, id, codes);
    const ready = session.#signals.next(READY);
    session.#line = await WebSocketLine.open(
      server.port,
      `/ws?session_id=${id}&file=${encodeURIComponent(file)}`,
      (message, at) => session.#take(message, at),
    );
    await ready;
    return session;
  }

  async edit(cell: number, code: string): Promise<number> {
    const ended = this.#signals.next(ENDED);
    await this.post('/api/kernel/run', { cellIds: [this.#cellIds[cell]!], codes: [code] });
    return ended;
  }

  async run(cell?: number): Promise<number> {
    const ended = this.#signals.next(ENDED);
    const cellIds = cell === undefined ? this.#cellIds : [this.#cellIds[cell]!];
    const codes = cell === undefined ? this.#codes : [this.#codes[cell]!];
    await this.post('/api/kernel/run', { cellIds, codes });
    return ended;
  }

  /** The answer is a stream of events, which ends 50 ms after the kernel has. */
  call(code: string): Promise<number> {
    const request = plainRequest(
      'POST',
      '/api/kernel/execute',
      { code },
      `marimo-session-id: ${this.id}\r\n`,
    );
    return new Promise((resolve, reject) => {
      let tail = '';
      const socket = connect({ port: this.#server.port, host: '127.0.0.1', noDelay: true }, () =>
        socket.write(request),
      );
      socket.on('data', (chunk) => {
        const at = performance.now();
        tail = (tail + chunk.toString('latin1')).slice(-LAST_CHUNK.length);
        if (!tail.endsWith(LAST_CHUNK)) return;
        resolve(at);
        socket.destroy();
      });
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('marimo has closed the connection of a code call.')));
    });
  }

  printed(text: string): Promise<number> {
    return this.#signals.next(`print ${text}`);
  }

  interrupt(): void {
    this.post('/api/kernel/interrupt', {}).catch(() => undefined); // a run that does not end fails by its timeout
  }

  async idle(): Promise<void> {
    // `run` waits for the kernel.
  }

  lost(): Promise<number> {
    return this.#signals.next(DIED);
  }

  collect(): () => number {
    this.#received = 0;
    return () => this.#received;
  }

  async close(): Promise<void> {
    this.#line?.close();
    await this.post('/api/home/shutdown_session', { sessionId: this.id });
    this.#wire?.close();
  }

  /** Resolves when the answer has come. Rejects unless it is 200. */
  async post(path: string, body: object): Promise<void> {
    if (this.#wire === undefined || this.#wire.isClosed) this.#wire = await Wire.open(this.#server.port);
    const request = plainRequest('POST', path, body, `marimo-session-id: ${this.id}\r\n`);
    expected(await this.#wire.send(request), 200);
  }

  #take(message: Buffer, at: number): void {
    const [, name = ''] = MESSAGE_NAME.exec(message.toString('latin1', 0, 60)) ?? [];
    if (name === READY) {
      const { data } = JSON.parse(message.toString('utf8')) as { data: { cell_ids: readonly string[] } };
      this.#cellIds = data.cell_ids;
    }
    if (name === CELL) this.#print(message.toString('latin1'), at);
    else this.#signals.give(name, at);
  }

  #print(text: string, at: number): void {
    for (const waited of this.#signals.names()) {
      if (waited.startsWith('print ') && text.includes(waited.slice(6))) this.#signals.give(waited, at);
    }
    if (text.length > 1_000) this.#received += text.split('x').length - 1;
  }
}
