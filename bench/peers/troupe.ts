/** Troupe, driven as its own clients drive it: everything over HTTP, events from the session's stream. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Api, MARK } from '../api.ts';
import { runCommand } from '../commands.ts';
import { Feed } from '../feed.ts';
import { type LaunchedServer, launchServer } from '../server.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { type Answer, decoded, expected, type Wire } from '../wire.ts';
import { jupyterFiles, notebookFile } from './notebook-files.ts';
import type { Contestant, Session, Subject } from './subject.ts';

/** Returns Troupe, from the file of its program. */
export function troupe(main: string): Contestant {
  const cli = join(dirname(main), 'cli.js');
  return { name: 'troupe', title: 'Troupe', launch: async () => subject(await launchServer({ main }), cli) };
}

function subject({ pid, firstAnswerMs, api, end }: LaunchedServer, cli: string): Subject {
  const { port, token, workspaceId } = api.endpoint;
  const folder = temporaryFolder('commands');
  const command = (...args: string[]) =>
    runCommand(process.execPath, [cli, ...args], {
      cwd: folder.path,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: folder.path,
        SERVICE_BASE_URL: `http://127.0.0.1:${port}`,
        SERVICE_ACCESS_TOKEN: token,
        SERVICE_WORKSPACE_ID: workspaceId,
      },
    });
  return {
    pid,
    firstAnswerMs,
    editsCells: true,
    async runFile(codes) {
      writeFileSync(join(folder.path, 'commands.py'), notebookFile(codes));
      return () => command('run', '--rm', 'commands.py', '-o', 'commands.html');
    },
    async convertFiles(count) {
      const files = jupyterFiles(folder.path, count);
      return () => command('notebooks', 'import', ...files);
    },
    async exportPage(codes) {
      const { id } = await api.session(codes);
      for (const [index] of codes.entries()) await api.run(id, `c${index}`);
      const request = api.bytes('GET', `/api/v3/notebooks/${id}/export?format=html`);
      return async () => {
        const wire = await api.wire();
        expected(await wire.send(request), 200);
        wire.close();
      };
    },
    async prepare(codes) {
      const id = await api.notebook(codes);
      const open = api.openBytes(id, await api.environment());
      return () => TroupeSession.open(api, id, open);
    },
    async reads() {
      const id = await api.notebook(['x = 1', 'x + 1']);
      return { port, request: api.bytes('GET', `/api/v3/notebooks/${id}`), expect: 200 };
    },
    async creates() {
      const cells = [{ cell_id: 'a', code: 'x = 1' }];
      const request = api.bytes('POST', '/api/v3/notebooks', { serialization: { cells } });
      return { port, request, expect: 201 };
    },
    subscription: (session) => ({
      port,
      requests: [api.bytes('GET', `/api/v3/notebook-sessions/${(session as TroupeSession).id}/events`)],
    }),
    async end() {
      await end();
      folder.remove();
    },
  };
}

class TroupeSession implements Session {
  readonly id: string;
  readonly #api: Api;
  #wire: Wire;
  readonly #feed: Feed;
  #ready: Promise<unknown> = Promise.resolve();
  #accepted: Promise<string> = Promise.resolve('');

  private constructor(api: Api, id: string, wire: Wire, feed: Feed) {
    this.#api = api;
    this.id = id;
    this.#wire = wire;
    this.#feed = feed;
  }

  static async open(api: Api, id: string, open: Buffer): Promise<TroupeSession> {
    const wire = await api.wire();
    expected(await wire.send(open), 202);
    const { feed, seen } = await Feed.open(api.endpoint, id, MARK.ready);
    await seen[0];
    return new TroupeSession(api, id, wire, feed);
  }

  run(cell?: number): Promise<number> {
    return this.#execute(this.#api.executeBytes(this.id, ...(cell === undefined ? [] : [`c${cell}`])));
  }

  edit(cell: number, code: string): Promise<number> {
    return this.#execute(this.#api.editBytes(this.id, `c${cell}`, code));
  }

  async #execute(request: Buffer): Promise<number> {
    const ended = this.#feed.until(MARK.completed, MARK.failed, MARK.cancelled);
    this.#accepted = this.#send(request).then(
      (answer) => decoded<{ runId: string }>(expected(answer, 202)).runId,
    );
    await this.#accepted;
    return ended;
  }

  async call(code: string): Promise<number> {
    return expected(await this.#send(this.#api.codeBytes(this.id, code)), 200).at;
  }

  /** A cancel needs the id of the run, and the response with the id may arrive after the first event of the stream. */
  async printed(text: string): Promise<void> {
    await this.#feed.until(text);
    await this.#accepted;
  }

  interrupt(): void {
    // The session may be ready before the cancel is answered, and a connection takes one request at a time.
    const answered = this.#cancel().catch(() => undefined); // a run that does not end fails by its timeout
    this.#ready = Promise.all([this.#feed.until(MARK.ready), answered]);
  }

  async idle(): Promise<void> {
    await this.#ready;
  }

  lost(): Promise<number> {
    return this.#feed.until(MARK.failed);
  }

  collect(): () => number {
    this.#feed.keep();
    return () =>
      this.#feed
        .events()
        .filter(({ type }) => type === 'console-output')
        .reduce((sum, { data }) => sum + String(data.text).split('x').length - 1, 0);
  }

  async close(): Promise<void> {
    this.#feed.close();
    this.#wire.close();
    await this.#api.close(this.id);
  }

  async #cancel(): Promise<void> {
    const runId = await this.#accepted;
    await this.#send(this.#api.bytes('POST', `/api/v3/runs/${runId}/cancel`, {}));
  }

  /**
   * The server closes a connection that was silent for ten seconds, which happens while other servers have
   * their turn.
   */
  async #send(request: Buffer): Promise<Answer> {
    if (this.#wire.isClosed) this.#wire = await this.#api.wire();
    return this.#wire.send(request);
  }
}
