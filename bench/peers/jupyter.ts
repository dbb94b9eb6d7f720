/** Jupyter Server with ipykernel, driven as JupyterLab drives it: sessions over REST, kernels over a WebSocket. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, startChildServer } from '../child-server.ts';
import { runCommand } from '../commands.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { decoded, expected, plainRequest, Wire } from '../wire.ts';
import { PEERS_FOLDER } from './environment.ts';
import { jupyterFile } from './notebook-files.ts';
import { Signals } from './signals.ts';
import type { Contestant, Repeated, Session, Subject } from './subject.ts';
import { WebSocketLine } from './websocket.ts';

/** The members of a message that this client reads. */
interface Message {
  readonly header: { readonly msg_type: string };
  readonly parent_header: { readonly msg_id?: string };
  readonly content: { readonly execution_state?: string; readonly text?: string };
}

/** Returns Jupyter Server as it is shipped, or without the handicaps that jupyter_tuned.py names. */
export function jupyter(python: string, tuned: boolean): Contestant {
  return {
    name: tuned ? 'jupyter-tuned' : 'jupyter',
    title: tuned
      ? 'Jupyter Server without delayed acknowledgements and without its limit of output'
      : 'Jupyter Server with ipykernel, as shipped',
    launch: () => launch(python, tuned),
  };
}

async function launch(python: string, tuned: boolean): Promise<Subject> {
  const folder = temporaryFolder('jupyter');
  const home = folder.path;
  const port = await freePort();
  const child = startChildServer({
    program: python,
    args: [
      ...['-m', 'jupyter_server', '--no-browser', '--allow-root', '--ip=127.0.0.1', `--port=${port}`],
      ...[`--ServerApp.root_dir=${home}`, '--IdentityProvider.token=', '--ServerApp.disable_check_xsrf=True'],
      ...['--ServerApp.port_retries=0', '--log-level=ERROR'],
      ...(tuned ? [`--config=${join(PEERS_FOLDER, 'jupyter_tuned.py')}`] : []),
    ],
    cwd: home,
    env: { PATH: process.env.PATH ?? '', HOME: home, JUPYTER_RUNTIME_DIR: join(home, 'runtime') },
    port,
  });
  const end = async () => {
    await child.end();
    folder.remove();
  };
  try {
    const firstAnswerMs = (await child.answeredAt('/api')) - child.startedAt;
    const server = new JupyterServer(port, await Wire.open(port), await cookieOf(port));
    return {
      pid: child.pid,
      firstAnswerMs,
      prepare: (codes) => server.prepare(codes),
      reads: () => server.reads(),
      creates: async () => server.creates(),
      ...(tuned
        ? {}
        : {
            async runFile(codes: readonly string[]) {
              writeFileSync(join(home, 'commands.ipynb'), jupyterFile(codes));
              const args = ['-m', 'papermill', '--no-progress-bar', 'commands.ipynb', 'out.ipynb'];
              const env = { PATH: process.env.PATH ?? '', HOME: home };
              return () => runCommand(python, args, { cwd: home, env });
            },
          }),
      end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Returns the cookie that a browser would send: without the cookie the server makes a new user for each request. */
async function cookieOf(port: number): Promise<string> {
  const { headers } = await fetch(`http://127.0.0.1:${port}/api`);
  return headers
    .getSetCookie()
    .map((cookie) => cookie.split(';')[0])
    .join('; ');
}

class JupyterServer {
  readonly port: number;
  readonly #wire: Wire;
  readonly #headers: string;
  #notebooks = 0;

  constructor(port: number, wire: Wire, cookie: string) {
    this.port = port;
    this.#wire = wire;
    this.#headers = `cookie: ${cookie}\r\n`;
  }

  async send(method: string, path: string, body?: unknown) {
    return expected(await this.#wire.send(plainRequest(method, path, body, this.#headers)), 200, 299);
  }

  async prepare(codes: readonly string[]): Promise<() => Promise<Session>> {
    const path = await this.#save(codes);
    return () => JupyterSession.open(this, path, codes);
  }

  async reads(): Promise<Repeated> {
    const path = await this.#save(['x = 1', 'x + 1']);
    const request = plainRequest('GET', `/api/contents/${path}`, undefined, this.#headers);
    return { port: this.port, request, expect: 200 };
  }

  creates(): Repeated {
    const path = '/api/contents/made00000000.ipynb';
    const body = { type: 'notebook', content: notebook(['x = 1']) };
    const request = plainRequest('PUT', path, body, this.#headers);
    return { port: this.port, request, expect: 201, numberAt: request.indexOf('00000000') };
  }

  async #save(codes: readonly string[]): Promise<string> {
    const path = `notebook${this.#notebooks++}.ipynb`;
    await this.send('PUT', `/api/contents/${path}`, { type: 'notebook', content: notebook(codes) });
    return path;
  }
}

function notebook(codes: readonly string[]) {
  const cells = codes.map((source, i) => ({
    cell_type: 'code',
    id: `c${i}`,
    source,
    metadata: {},
    outputs: [],
    execution_count: null,
  }));
  return { cells, metadata: {}, nbformat: 4, nbformat_minor: 5 };
}

class JupyterSession implements Session {
  readonly #server: JupyterServer;
  readonly #codes: readonly string[];
  readonly #ids: { readonly session: string; readonly kernel: string };
  readonly #signals = new Signals();
  #line: WebSocketLine | undefined;
  #sent = 0;
  #received = 0;

  private constructor(
    server: JupyterServer,
    codes: readonly string[],
    ids: { readonly session: string; readonly kernel: string },
  ) {
    this.#server = server;
    this.#codes = codes;
    this.#ids = ids;
  }

  static async open(server: JupyterServer, path: string, codes: readonly string[]): Promise<JupyterSession> {
    const body = { path, name: path, type: 'notebook', kernel: { name: 'python3' } };
    const made = await server.send('POST', '/api/sessions', body);
    const { id, kernel } = decoded<{ id: string; kernel: { id: string } }>(made);
    const session = new JupyterSession(server, codes, { session: id, kernel: kernel.id });
    session.#line = await WebSocketLine.open(
      server.port,
      `/api/kernels/${kernel.id}/channels?session_id=${id}`,
      (message, at) => session.#take(JSON.parse(message.toString('utf8')) as Message, at),
    );
    await session.#ask('kernel_info_request', {});
    return session;
  }

  async run(cell?: number): Promise<number> {
    const codes = cell === undefined ? this.#codes : [this.#codes[cell]!];
    const ends = codes.map((code) => this.#execute(code, true));
    return Math.max(...(await Promise.all(ends)));
  }

  call(code: string): Promise<number> {
    return this.#execute(code, false);
  }

  printed(text: string): Promise<number> {
    return this.#signals.next(`print ${text}`);
  }

  interrupt(): void {
    this.#server.send('POST', `/api/kernels/${this.#ids.kernel}/interrupt`).catch(() => undefined); // a run that does not end fails by its timeout
  }

  async idle(): Promise<void> {
    // `run` waits for the kernel to be idle.
  }

  lost(): Promise<number> {
    return this.#signals.next('lost');
  }

  collect(): () => number {
    this.#received = 0;
    return () => this.#received;
  }

  async close(): Promise<void> {
    this.#line?.close();
    await this.#server.send('DELETE', `/api/sessions/${this.#ids.session}`);
  }

  #execute(code: string, isCell: boolean): Promise<number> {
    const content = { code, silent: false, store_history: isCell, user_expressions: {}, allow_stdin: false };
    return this.#ask('execute_request', { ...content, stop_on_error: true });
  }

  /** Sends a request. Resolves when its reply has come and the kernel is idle again, as JupyterLab's futures do. */
  async #ask(type: string, content: object): Promise<number> {
    const id = `${this.#ids.session}-${++this.#sent}`;
    const header = { msg_id: id, msg_type: type, username: '', session: this.#ids.session, version: '5.3' };
    const both = Promise.all([this.#signals.next(`reply ${id}`), this.#signals.next(`idle ${id}`)]);
    const message = {
      header: { ...header, date: new Date().toISOString() },
      parent_header: {},
      metadata: {},
      content,
      channel: 'shell',
      buffers: [],
    };
    this.#line?.send(JSON.stringify(message));
    return Math.max(...(await both));
  }

  #take({ header, parent_header, content }: Message, at: number): void {
    const parent = parent_header.msg_id ?? '';
    if (header.msg_type.endsWith('_reply')) this.#signals.give(`reply ${parent}`, at);
    else if (header.msg_type === 'stream') this.#print(content.text ?? '', at);
    else if (header.msg_type === 'status') {
      if (content.execution_state === 'idle') this.#signals.give(`idle ${parent}`, at);
      else if (/restarting|dead/.test(content.execution_state ?? '')) this.#signals.give('lost', at);
    }
  }

  #print(text: string, at: number): void {
    for (const waited of this.#signals.names()) {
      if (waited.startsWith('print ') && text.includes(waited.slice(6))) this.#signals.give(waited, at);
    }
    if (text.length > 100) this.#received += text.split('x').length - 1;
  }
}
