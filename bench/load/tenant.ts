/**
 * A tenant that uses a server as much as it may, in a thread of its own. Its viewers and editors read and change
 * records, files and pages, call MCP, try to sign in, and convert notebooks. Its kernels compute and print. Some of
 * its streams are read and some are not. It has a workspace and an address of its own.
 */
import { once } from 'node:events';
import { Agent, request as send } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { Api } from '../api.ts';
import { type Endpoint, requestBytes } from '../wire.ts';

/** The requests of the tenant so far. */
export interface TenantReport {
  /** The successful requests by their kind; the refusal of a wrong token counts as success. */
  readonly counts: Readonly<Record<string, number>>;
  readonly refused: number;
}

interface Tokens {
  readonly port: number;
  readonly editor: Endpoint;
  readonly viewer: Endpoint;
}

export class Tenant {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  /** Makes a workspace with an editor and a viewer, and begins. Resolves when all kinds of requests have begun. */
  static async open(api: Api): Promise<Tenant> {
    const { port, token } = api.endpoint;
    const { id: workspaceId } = await api.call<{ id: string }>('POST', '/api/v3/workspaces', {
      name: 'Busy',
    });
    const owner = new Api({ port, token, workspaceId });
    const tokenOf = async (userId: string, role: string): Promise<Endpoint> => {
      await owner.call('POST', '/api/v3/members', { userId, role });
      const scopes = ['workspaceRuntime:connect', 'datasource:read', 'workspace:manage'];
      const made = await owner.call<{ token: string }>('POST', '/api/v3/access-tokens', {
        name: role,
        userId,
        scopes,
      });
      return { port, token: made.token, workspaceId };
    };
    const tokens: Tokens = {
      port,
      editor: await tokenOf('busy-editor', 'editor'),
      viewer: await tokenOf('busy-viewer', 'viewer'),
    };
    const worker = new Worker(new URL(import.meta.url), { workerData: tokens });
    worker.on('error', (error) => process.stderr.write(`bench: the tenant has failed: ${error.message}\n`));
    await once(worker, 'message');
    return new Tenant(worker);
  }

  async report(): Promise<TenantReport> {
    const answer = once(this.#worker, 'message');
    this.#worker.postMessage('report');
    const [report] = (await answer) as [TenantReport];
    return report;
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}

const ADDRESS = '127.0.0.2';
const COMPUTING = 'x = 0\nwhile True:\n    x += 1';
const PRINTING = 'i = 0\nwhile True:\n    print("x" * 1000)\n    i += 1';
const ROWS = 'import random\n[[random.random() for _ in range(100)] for _ in range(1000)]';
const READERS = 20;
const STALLED = 20;
const REFUSED_PAUSE_MS = 50;
const FILE = Buffer.alloc(4 * 1024 * 1024, 'some text in a file\n');
const IPYNB = JSON.stringify({
  cells: Array.from({ length: 200 }, (_, i) => ({
    cell_type: 'code',
    source: `x_${i} = ${i}\n# ${'text '.repeat(50)}`,
    metadata: {},
    outputs: [],
    execution_count: null,
  })),
  metadata: {},
  nbformat: 4,
  nbformat_minor: 5,
});
const MCP_VERSION = '2026-07-28';

const counts: Record<string, number> = {};
let refused = 0;
const agent = new Agent({ keepAlive: true, maxSockets: 256, localAddress: ADDRESS } as never);

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

/** Resolves with the status and the body of an answer; the status is 0 when the connection ends before. */
function ask({ port, token, workspaceId }: Endpoint, { method, path, headers, body }: Sent) {
  return new Promise<{ readonly status: number; readonly text: string; readonly cookie: string }>(
    (resolve) => {
      const all = {
        authorization: `Bearer ${token}`,
        'service-workspace-id': workspaceId,
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
        ...headers,
      };
      const outgoing = send({ host: '127.0.0.1', port, method, path, agent, headers: all }, (incoming) => {
        const pieces: Buffer[] = [];
        incoming.on('data', (piece: Buffer) => pieces.push(piece));
        incoming.on('error', () => resolve({ status: 0, text: '', cookie: '' }));
        incoming.on('end', () =>
          resolve({
            status: incoming.statusCode ?? 0,
            text: Buffer.concat(pieces).toString('utf8'),
            cookie: incoming.headers['set-cookie']?.[0]?.split(';')[0] ?? '',
          }),
        );
      });
      outgoing.on('error', () => resolve({ status: 0, text: '', cookie: '' }));
      outgoing.end(body);
    },
  );
}

/** Sends requests without a pause, over some connections. */
function repeat(what: string, connections: number, next: (turn: number) => readonly [Endpoint, Sent]): void {
  counts[what] = 0;
  const one = async (from: number) => {
    for (let turn = from; ; turn += connections) {
      const { status } = await ask(...next(turn));
      if ((status >= 200 && status < 400) || status === 401) counts[what] = (counts[what] ?? 0) + 1;
      else {
        refused++;
        await sleep(REFUSED_PAUSE_MS);
      }
    }
  };
  for (let i = 0; i < connections; i++) void one(i);
}

async function begin({ editor, viewer, port }: Tokens): Promise<void> {
  const api = new Api(editor);
  const json = (method: string, path: string, body: unknown): Sent => ({
    method,
    path,
    body: JSON.stringify(body),
  });
  const computing = [
    await api.session([COMPUTING]),
    await api.session([COMPUTING]),
    await api.session([ROWS]),
  ];
  const printing = [await api.session([PRINTING]), await api.session([PRINTING])];
  const shown = await api.session(['import marimo as mo', 'mo.md("# text")', '1 + 1']);
  const called = await api.session(['x = 1']);
  const busy = [...computing, ...printing];
  repeat('runs that compute or print', busy.length, (turn) => {
    const { id } = busy[turn % busy.length]!;
    return [
      editor,
      json('POST', `/api/v3/notebook-sessions/${id}/executions`, { type: 'all', timeoutS: 20 }),
    ];
  });
  repeat('lists by a viewer', 8, (turn) => {
    const paths = [
      '/notebooks?limit=100',
      '/runs?limit=100&order=desc',
      '/notebook-sessions?limit=100',
      '/notebooks?title=a',
    ];
    return [viewer, { method: 'GET', path: `/api/v3${paths[turn % paths.length]}` }];
  });
  repeat('records read by a viewer', 8, (turn) => {
    const { id } = busy[turn % busy.length]!;
    return [viewer, { method: 'GET', path: `/api/v3/notebooks/${id}` }];
  });
  repeat('notebooks created by an editor', 4, (turn) => [
    editor,
    json('POST', '/api/v3/notebooks', {
      title: `a ${turn}`,
      serialization: { cells: [{ cell_id: 'a', code: '1' }] },
    }),
  ]);
  repeat('calls by MCP', 4, () => [editor, mcpCall(called.id)]);
  const page = await pageOf(editor, shown.id);
  const fromPage = (path: string, body: unknown): readonly [Endpoint, Sent] => {
    const headers = { authorization: `Bearer ${page.token}`, 'marimo-session-id': 's_busy' };
    return [editor, { ...json('POST', `/n/${shown.id}/api/${path}`, body), headers }];
  };
  stream(port, page.token, `/n/${shown.id}/sse?session_id=s_busy`, false);
  repeat('changes by a page', 2, (turn) =>
    fromPage('document/transaction', { changes: [{ type: 'set-code', cellId: 'c2', code: `1 + ${turn}` }] }),
  );
  repeat('runs by a page', 1, () =>
    fromPage('kernel/run', { cellIds: ['c1', 'c2'], codes: ['mo.md("# text")', '1 + 1'] }),
  );
  repeat('searches of files by a page', 2, () => fromPage('files/search', { query: 'file', path: '/' }));
  repeat('files uploaded', 2, (turn) => [
    editor,
    {
      method: 'PUT',
      path: `/api/v3/files/file-${turn % 200}.txt`,
      body: FILE,
      headers: { 'content-type': 'text/plain' },
    },
  ]);
  repeat('notebooks imported', 1, () => [
    editor,
    json('POST', '/api/v3/notebooks/import', { format: 'ipynb', content: IPYNB }),
  ]);
  repeat('notebooks exported as a page', 1, () => [
    editor,
    { method: 'GET', path: `/api/v3/notebooks/${shown.id}/export?format=html` },
  ]);
  repeat('attempts to sign in', 2, (turn) => [
    { ...editor, token: `wrong-${turn}` },
    { method: 'POST', path: '/sign-in', headers: { origin: `http://127.0.0.1:${port}` } },
  ]);
  repeat('sign-ins of command lines begun', 1, () => [
    editor,
    json('POST', '/sign-in/command-line', { machine: 'busy' }),
  ]);
  for (let i = 0; i < READERS + STALLED; i++) {
    const { id } = printing[i % printing.length]!;
    stream(port, viewer.token, `/api/v3/notebook-sessions/${id}/events`, i >= READERS, viewer.workspaceId);
  }
}

function mcpCall(notebookId: string): Sent {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MCP_VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name: 'run_python', arguments: { notebookId, code: '1+1' }, _meta };
  return {
    method: 'POST',
    path: '/mcp',
    headers: {
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MCP_VERSION,
      'mcp-method': 'tools/call',
      'mcp-name': 'run_python',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  };
}

async function pageOf(editor: Endpoint, id: string): Promise<{ readonly token: string }> {
  const made = await ask(editor, {
    method: 'POST',
    path: `/api/v3/notebook-sessions/${id}/pages`,
    body: '{}',
  });
  const { url } = JSON.parse(made.text) as { readonly url: string };
  const { cookie } = await ask(editor, { method: 'GET', path: url, headers: { authorization: '' } });
  const html = await ask(editor, {
    method: 'GET',
    path: `/n/${id}/page/`,
    headers: { authorization: '', cookie },
  });
  const token = /"authToken":"([^"]+)"/.exec(html.text)?.[1];
  if (token === undefined) throw new Error(`The page has no token: ${html.status} ${html.text}`);
  return { token };
}

/** Opens a stream, and opens it again when it ends. A stalled stream is not read. */
function stream(port: number, token: string, path: string, isStalled: boolean, workspaceId = ''): void {
  const socket = connect({ port, host: '127.0.0.1', localAddress: ADDRESS });
  socket.on('connect', () => socket.write(requestBytes({ token, workspaceId }, 'GET', path)));
  socket.on('error', () => {});
  socket.on('close', () =>
    setTimeout(() => stream(port, token, path, isStalled, workspaceId), REFUSED_PAUSE_MS),
  );
  if (isStalled) socket.pause();
  else socket.resume();
}

if (!isMainThread) {
  await begin(workerData as Tokens);
  parentPort?.on('message', () => parentPort?.postMessage({ counts, refused } satisfies TenantReport));
  parentPort?.postMessage('begun');
}
