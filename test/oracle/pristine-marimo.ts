/** marimo as it is installed, unmodified: its own server, called as its front end and its agents call it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'undici';
import { eventually } from '#test/support/processes.ts';
import type { Owner } from '#test/support/server-fixture.ts';
import { freePort } from '#test/support/stand-ins/reverse-proxies.ts';
import type { Answer, Bench, Cells, Notebook } from './situation.ts';

const PYTHON =
  process.env.TROUPE_PYTHON || fileURLToPath(new URL('../../../.venv/bin/python', import.meta.url));
/**
 * With these settings requested cells run, and their dependents become stale, as in our kernels.
 */
const CONFIG = '[runtime]\non_cell_change = "lazy"\nauto_instantiate = false\n';

interface Message {
  readonly op: string;
  readonly run_id?: string;
  readonly cell_ids?: readonly string[];
  readonly cell_id?: string;
  readonly output?: { readonly channel: string; readonly data: unknown } | null;
}

/** Starts one marimo server for all notebooks, which ends with the owner. Resolves when it answers. */
export async function startMarimo(owner: Owner): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-oracle-'));
  const [home, notebooks] = ['home', 'notebooks'].map((name) => join(folder, name)) as [string, string];
  for (const path of [home, notebooks]) mkdirSync(path);
  writeFileSync(join(home, '.marimo.toml'), CONFIG);
  const port = await freePort();
  const { PATH = '', LANG = 'C.UTF-8' } = process.env;
  const child: ChildProcess = spawn(
    PYTHON,
    [
      '-m',
      'marimo',
      'edit',
      notebooks,
      '--headless',
      '--no-token',
      '--no-skew-protection',
      '--port',
      `${port}`,
    ],
    { cwd: notebooks, env: { PATH, LANG, HOME: home }, stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  owner.after(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  const base = `127.0.0.1:${port}`;
  const isUp = () =>
    fetch(`http://${base}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually('marimo answers', isUp, 60_000);
  let count = 0;
  return {
    async open(cells) {
      const file = join(notebooks, `notebook${++count}.py`);
      writeFileSync(file, 'import marimo\napp = marimo.App()\n');
      const session = new Session(base, `s_${count}`, file);
      await session.start(cells);
      return session;
    },
  };
}

class Session implements Notebook {
  readonly #base: string;
  readonly #id: string;
  readonly #socket: WebSocket;
  readonly #messages: Message[] = [];
  #wake: () => void = () => {};

  constructor(base: string, id: string, file: string) {
    this.#base = base;
    this.#id = id;
    this.#socket = new WebSocket(`ws://${base}/ws?session_id=${id}&file=${encodeURIComponent(file)}`);
    this.#socket.addEventListener('message', ({ data }) => {
      const { data: fields = {}, ...message } = JSON.parse(String(data)) as Message & { data?: object };
      this.#messages.push({ ...message, ...fields });
      this.#wake();
    });
  }

  /** Puts the cells into the document, as a front end would, and runs them. Removes the empty cell of a new file. */
  async start(cells: Cells): Promise<void> {
    const ready = await this.#until(({ op }) => op === 'kernel-ready');
    const config = { column: null, disabled: false, hide_code: false };
    const place = { before: null, after: null };
    const changes = [
      ...(ready.cell_ids ?? []).map((cellId) => ({ type: 'delete-cell', cellId })),
      ...Object.entries(cells).map(([cellId, code]) => {
        return { type: 'create-cell', cellId, code, name: '', config, ...place };
      }),
    ];
    await this.#post('/api/document/transaction', { changes });
    if (Object.keys(cells).length === 0) return;
    const from = this.#messages.length;
    await this.#post('/api/kernel/run', { cellIds: Object.keys(cells), codes: Object.values(cells) });
    await this.#until(({ op }) => op === 'completed-run', from);
  }

  async call(code: string): Promise<Answer> {
    const from = this.#messages.length;
    const text = await this.#post('/api/kernel/execute', { code });
    // Other runs end as well: only the end of the run of this code counts.
    const { run_id } = await this.#until(({ cell_id }) => cell_id === '__scratch__', from);
    await this.#until((message) => message.op === 'completed-run' && message.run_id === run_id, from);
    const events = text.split('\n\n').flatMap((event) => {
      const [, type, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
      return type === undefined ? [] : [{ type, data: JSON.parse(data!) }];
    });
    const printed = (channel: string) =>
      events.map(({ type, data }) => (type === channel ? data.data : '')).join('');
    const done = events.find(({ type }) => type === 'done')?.data;
    const errors = this.#messages.slice(from).flatMap(({ op, cell_id, output }) => {
      if (op !== 'cell-op' || output?.channel !== 'marimo-error' || !Array.isArray(output.data)) return [];
      return output.data.map((error) => ({
        type: error.exception_type ?? error.type,
        message: error.msg ?? null,
        cellId: cell_id === '__scratch__' ? null : (cell_id ?? null),
      }));
    });
    return {
      success: done.success,
      output: done.output.data === '' ? null : done.output.data,
      stdout: printed('stdout'),
      stderr: printed('stderr'),
      errors,
    };
  }

  async close(): Promise<void> {
    await this.#post('/api/kernel/restart_session', {});
    this.#socket.close();
  }

  async #post(path: string, body: unknown): Promise<string> {
    const headers = { 'content-type': 'application/json', 'marimo-session-id': this.#id };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`http://${this.#base}${path}`, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`marimo answered ${path} with ${response.status}: ${text}`);
    return text;
  }

  async #until(matches: (message: Message) => boolean, from = 0): Promise<Message> {
    for (;;) {
      const found = this.#messages.slice(from).find(matches);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
