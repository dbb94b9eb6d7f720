/** Fuzzes a whole server in this process with bad texts, and watches its event loop. */
import { closeSync, mkdtempSync, openSync, readSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { OpenApiDocument } from '#src/http/openapi/document.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { SeededRandom } from '#test/support/random.ts';
import { removeAfter } from '#test/support/remove-folder.ts';
import { OWNER, type Owner, startServer, type TestServer } from '#test/support/server-fixture.ts';
import { CLIENT_ID, CLIENT_SECRET, TestIdentityProvider } from '#test/support/stand-ins/identity-provider.ts';
import { BAD_TEXTS } from './bad-texts.ts';
import { asSchema, type Schema } from './schema-values.ts';
import { type TextPlace, textPlaces, type World } from './text-places.ts';
import type { SenderMessage, SentText, TextJob } from './text-sender.ts';

export interface TextFuzz {
  readonly seed: number;
  readonly forMs: number;
  /** How many different requests are sent at most. */
  readonly most?: number;
  readonly only: string;
  readonly kind: string;
  readonly say: (line: string) => void;
}

export interface Block {
  readonly place: string;
  readonly kind: string;
  readonly chars: number;
  readonly status: number;
  /** The longest time for which the event loop did nothing else; of several attempts the least. */
  readonly ms: number;
}

export interface TextReport {
  /** All requests, with those that were repeated. */
  readonly requests: number;
  /** The different ones. */
  readonly tried: number;
  /** How many requests there would be with each kind and size in each place. */
  readonly possible: number;
  /** The operations that have a place for a text. */
  readonly operations: readonly string[];
  readonly statuses: Readonly<Record<string, number>>;
  readonly worst: readonly Block[];
  /** Blocks that came once and did not come again, such as those of a garbage collection, in milliseconds. */
  readonly spurious: readonly number[];
  readonly problems: readonly string[];
}

/** So many requests are sent at once. With a longer block, each of them is sent alone. */
const [SMALL_TOGETHER, LARGE_TOGETHER] = [12, 3];
const ALONE_FROM_MS = 15;
/** A longer block is measured again. */
const REPEATED_FROM_MS = 25;
const SHOWN_FROM_MS = 50;
const ATTEMPTS = 5;
const KEPT = 100;
const LOOK_MS = 2;
/** Work that follows an answer is counted to its request for so long. */
const AFTER_MS = 6;
const UPKEEP_EVERY = 400;
const MAX_CELLS = 50;
/** From this size on, a request is one of the large ones, which get half of the time. */
const LARGE_CHARS = 300_000;
const STARTS_WORK =
  /Execution|executeCode|changeCells|openNotebook|wake|Prompt|importNotebook|exportNotebook|mcp |page api\/(kernel|document|datasources|sql|export)/;

/** Sends requests until the time is over, or until all were sent. */
export async function fuzzTexts(owner: Owner, options: TextFuzz): Promise<TextReport> {
  const fuzz = await Fuzz.start(owner, options);
  return fuzz.run();
}

class Fuzz {
  readonly #options: TextFuzz;
  readonly #server: TestServer;
  readonly #sender: Worker;
  readonly #statuses: Record<string, number> = {};
  readonly #problems: string[] = [];
  readonly #spurious: number[] = [];
  readonly #watch: BlockWatch;
  #worst: Block[] = [];
  #world: World;
  #places: readonly TextPlace[];
  readonly #waiting = new Map<number, (sent: SentText) => void>();
  #nextId = 0;
  #requests = 0;
  #tried = 0;

  private constructor(options: TextFuzz, server: TestServer, world: World, watch: BlockWatch) {
    this.#options = options;
    this.#server = server;
    this.#world = world;
    this.#watch = watch;
    this.#places = textPlaces(world);
    const workerData = { baseUrl: server.baseUrl, world };
    this.#sender = new Worker(new URL('text-sender.js', import.meta.url), { workerData });
    this.#sender.on('message', (sent: SentText) => {
      this.#waiting.get(sent.id)?.(sent);
      this.#waiting.delete(sent.id);
    });
  }

  static async start(owner: Owner, options: TextFuzz): Promise<Fuzz> {
    const provider = await TestIdentityProvider.start(owner);
    const folder = mkdtempSync(join(tmpdir(), 'troupe-texts-'));
    removeAfter(owner, folder);
    writeFileSync(join(folder, 'secret'), CLIENT_SECRET);
    const server = await startServer(owner, {
      TROUPE_EGRESS_ALLOW: 'none',
      TROUPE_WORKERS: '1', // the event loop that is watched is that of this process
      TROUPE_KERNEL_NODES: 'none',
      TROUPE_OPENAI_COMPATIBLE_URL: 'http://127.0.0.1:1',
      TROUPE_DEFAULT_MODEL: 'openai-compatible/none',
      TROUPE_OIDC_ISSUER: provider.issuer,
      TROUPE_OIDC_CLIENT_ID: CLIENT_ID,
      TROUPE_OIDC_CLIENT_SECRET_FILE: join(folder, 'secret'),
    });
    provider.register(server.baseUrl);
    const watch = new BlockWatch();
    owner.after(async () => watch[Symbol.dispose]());
    const fuzz = new Fuzz(options, server, await inhabit(server), watch);
    owner.after(async () => void (await fuzz.#sender.terminate()));
    return fuzz;
  }

  async run(): Promise<TextReport> {
    const { seed, forMs, say, most = Number.POSITIVE_INFINITY } = this.#options;
    const jobs = this.#jobs(new SeededRandom(seed));
    const possible = jobs.small.length + jobs.large.length;
    say(
      `${this.#places.length} places, ${Object.keys(BAD_TEXTS).length} kinds of texts, ${possible} requests`,
    );
    const endsAt = performance.now() + forMs;
    const spent = { small: 0, large: 0 };
    let saidAt = performance.now();
    let [upkeepAt, upkeeps] = [UPKEEP_EVERY, 0];
    while (performance.now() < endsAt && this.#tried < most && jobs.small.length + jobs.large.length > 0) {
      const isLarge = jobs.small.length === 0 || (jobs.large.length > 0 && spent.large < spent.small);
      const list = isLarge ? jobs.large : jobs.small;
      const beganAt = performance.now();
      await this.#tryTogether(list.splice(isLarge ? -LARGE_TOGETHER : -SMALL_TOGETHER));
      spent[isLarge ? 'large' : 'small'] += performance.now() - beganAt;
      if (this.#tried >= upkeepAt) {
        await this.#upkeep(++upkeeps % 5 === 0);
        upkeepAt = this.#tried + UPKEEP_EVERY;
      }
      if (performance.now() - saidAt > 60_000) {
        saidAt = performance.now();
        say(
          `${this.#tried} of ${possible} requests, longest block ${this.#worst[0]?.ms.toFixed(1)} ms (${this.#worst[0]?.place})`,
        );
      }
    }
    return {
      requests: this.#requests,
      tried: this.#tried,
      possible,
      operations: [...new Set(this.#places.map(({ operation }) => operation))],
      statuses: this.#statuses,
      worst: this.#worst,
      spurious: this.#spurious.sort((a, b) => b - a).map(Math.round),
      problems: this.#problems,
    };
  }

  /** Returns all jobs, in an order that the seed gives. One with each place and kind comes before the other sizes. */
  #jobs(random: SeededRandom): { readonly small: TextJob[]; readonly large: TextJob[] } {
    const { only, kind: wanted } = this.#options;
    const kinds = Object.keys(BAD_TEXTS).filter((kind) => kind.includes(wanted));
    const jobs = { small: [] as TextJob[], large: [] as TextJob[] };
    const last = new Map<TextJob[], { readonly job: TextJob; readonly order: number }[]>();
    for (const list of [jobs.small, jobs.large]) last.set(list, []);
    for (const [at, place] of this.#places.entries()) {
      if (!nameOf(place).includes(only)) continue;
      for (const kind of kinds) {
        const chosen = new Set<TextJob[]>();
        for (const size of random.shuffled(sizesOf(place))) {
          const chars = typeof size === 'number' ? size : place.maxBytes;
          const list = jobs[chars >= LARGE_CHARS ? 'large' : 'small'];
          last
            .get(list)!
            .push({ job: { place: at, kind, size }, order: random.next() + (chosen.has(list) ? 0 : 1) });
          chosen.add(list);
        }
      }
    }
    for (const [list, found] of last)
      for (const { job } of found.sort((a, b) => a.order - b.order)) list.push(job);
    return jobs;
  }

  /** Sends some requests at once, because a busy machine takes longer to switch between threads than to answer. */
  async #tryTogether(jobs: readonly TextJob[]): Promise<void> {
    const { ms, answers } = await this.#measure(jobs);
    if (ms <= ALONE_FROM_MS) for (const [at, job] of jobs.entries()) this.#keep(job, answers[at]!, undefined);
    else for (const job of jobs) await this.#tryAlone(job);
  }

  async #tryAlone(job: TextJob): Promise<void> {
    const first = await this.#measure([job]);
    const [answer] = first.answers;
    let { ms } = first;
    if (ms > REPEATED_FROM_MS) {
      for (let count = 1; count < ATTEMPTS; count++) ms = Math.min(ms, (await this.#measure([job])).ms);
      if (first.ms > SHOWN_FROM_MS && ms <= SHOWN_FROM_MS) this.#spurious.push(first.ms);
      else if (ms > SHOWN_FROM_MS) {
        const name = nameOf(this.#places[job.place]!);
        this.#options.say(
          `${ms.toFixed(1)} ms: ${name}, ${job.kind}, ${answer?.chars} characters, ${answer?.status}`,
        );
      }
    }
    this.#keep(job, answer!, ms);
  }

  #keep(job: TextJob, { chars, status }: SentText, ms: number | undefined): void {
    this.#tried++;
    if (ms === undefined) return;
    this.#worst.push({ place: nameOf(this.#places[job.place]!), kind: job.kind, chars, status, ms });
    this.#worst = this.#worst.sort((a, b) => b.ms - a.ms).slice(0, KEPT);
  }

  async #measure(
    jobs: readonly TextJob[],
  ): Promise<{ readonly ms: number; readonly answers: readonly SentText[] }> {
    this.#watch.restart();
    const answers = await Promise.all(jobs.map((job) => this.#send({ job })));
    let isWorking = false;
    for (const [at, { status, chars, error, text }] of answers.entries()) {
      const place = this.#places[jobs[at]!.place]!;
      this.#requests++;
      this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
      if (
        status === 500 ||
        status === -1 ||
        (status === 0 && !/ECONNRESET|EPIPE|socket hang up|Invalid/.test(error))
      )
        this.#problem(`${nameOf(place)}, ${jobs[at]!.kind}, ${chars} characters: ${status} ${error} ${text}`);
      isWorking ||= status > 0 && status < 300 && STARTS_WORK.test(place.operation);
    }
    if (isWorking) await this.#untilFree();
    await sleep(AFTER_MS); // work that follows the answer has no end that a client could see
    return { ms: this.#watch.longestMs, answers };
  }

  #problem(problem: string): void {
    this.#options.say(`WRONG: ${problem}`);
    if (this.#problems.length < 200) this.#problems.push(problem);
  }

  #send(message: { readonly job: TextJob } | { readonly world: World }): Promise<SentText> {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#sender.postMessage({ ...message, id } satisfies SenderMessage);
    });
  }

  /** Resolves when the notebook is ready again. Work that goes on for seconds is interrupted. */
  async #untilFree(): Promise<void> {
    const { client, baseUrl } = this.#server;
    const { known, auth } = this.#world;
    for (let looks = 0; looks < 400; looks++) {
      const answer = await fetch(`${baseUrl}/api/v3/notebook-sessions/${known.notebookId}`, {
        headers: auth,
      });
      if (!/"status":"(busy|starting|restoring)","/.test(await answer.text())) return;
      if (looks === 200) await client.notebookSessions.interrupt(known.notebookId!).catch(() => {});
      await sleep(25); // the pace of the looks
    }
  }

  /** Deletes resources that requests have created, and opens those again that requests have closed. */
  async #upkeep(isThorough: boolean): Promise<void> {
    const { client } = this.#server;
    const { known, conversation } = this.#world;
    const { items: notebooks } = await client.notebooks.list({ limit: 100 });
    for (const { id } of notebooks)
      if (id !== known.notebookId && id !== conversation) await remove(this.#server, id);
    const session = await client.notebookSessions.get(known.notebookId!).catch(() => undefined);
    const isWhole = session?.status === 'ready' && session.cells.length <= MAX_CELLS;
    if (isWhole && !isThorough) return;
    await remove(this.#server, known.notebookId!);
    this.#world = await inhabit(this.#server);
    this.#places = textPlaces(this.#world);
    await this.#send({ world: this.#world });
  }
}

async function remove({ client }: TestServer, id: string): Promise<void> {
  await client.notebookSessions.close(id).catch(() => {});
  await client.notebooks.delete(id).catch(() => {});
}

function nameOf({ operation, member }: TextPlace): string {
  return `${operation} ${member}`;
}

function sizesOf({ maxChars, maxBytes }: TextPlace): readonly TextJob['size'][] {
  const large = maxBytes > 100_000 ? (['whole', 'beyond'] as const) : (['whole'] as const);
  if (maxChars !== undefined)
    return [...new Set([Math.min(maxChars, 1000), maxChars, maxChars + 1, ...large])];
  return maxBytes > 100_000 ? [1000, 60_000, 1_000_000, ...large] : [200, ...large, 'beyond'];
}

/** Creates one thing of each kind, opens the notebook with a kernel and its page, and signs in. */
async function inhabit(server: TestServer): Promise<World> {
  const { client, baseUrl } = server;
  const notebook = await openNotebook(server, { a: '1', b: 'print("x" * 100_000)\n"x" * 100_000' });
  const run = await notebook.run([]);
  const assets = run.output?.parts.flatMap((part) => (part.type === 'asset' ? [part.assetId] : [])) ?? [];
  await client.members.create({ userId: 'guest', role: 'viewer' }).catch(() => {});
  await client.datasources
    .create({ slug: 'kept', connection: { kind: 'sqlite', path: 'kept.sqlite' } })
    .catch(() => {});
  writeFileSync(join(server.filesDir, 'a.txt'), 'text');
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId: conversation } = await client.agentSessions.open({ environmentId });
  const page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const auth = { authorization: `Bearer ${OWNER.token}`, 'service-workspace-id': OWNER.workspaceId };
  const signedIn = await fetch(`${baseUrl}/sign-in`, {
    method: 'POST',
    headers: { ...auth, origin: baseUrl },
  });
  const browserCookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  const document = (await (await fetch(`${baseUrl}/api/v3/openapi.json`)).json()) as OpenApiDocument;
  const known = {
    notebookId: notebook.id,
    sessionId: notebook.id,
    notebookSessionId: notebook.id,
    environmentId,
    runId: run.id,
    assetId: assets[0] ?? 'x',
    slug: 'kept',
    datasourceSlug: 'kept',
    userId: 'guest',
    subject: 'user:guest',
    workspaceId: OWNER.workspaceId,
    cellId: 'b',
    cell_id: 'b',
    version: '1',
    provider: 'openai-compatible',
    kind: 'notebook-session',
    machine: 'run',
    path: 'a.txt',
    session_id: 'other',
    file: 'index.js',
    role: 'viewer',
  };
  return {
    document,
    known,
    conversation,
    auth,
    page: { token: page.token, cookie: page.cookie, id: page.pageId },
    browserCookie,
    tools: await toolsOf(baseUrl, auth),
  };
}

async function toolsOf(baseUrl: string, auth: Readonly<Record<string, string>>): Promise<World['tools']> {
  const response = await fetch(`${baseUrl}/mcp`, {
    method: 'POST',
    headers: { ...auth, accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  });
  const text = await response.text();
  const json = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text) as unknown;
  const { tools } = asSchema(asSchema(json).result) as {
    readonly tools?: readonly { name: string; inputSchema: Schema }[];
  };
  if (tools === undefined) throw new Error(`There are no tools of MCP: ${text}`);
  return tools.map(({ name, inputSchema }) => ({ name, inputSchema }));
}

const NS_PER_MS = 1e6;

/**
 * Measures how long the event loop of this process does nothing else, in processor time of its thread. A timer looks often, so a figure may
 * contain some turns of the loop that came within two milliseconds.
 */
class BlockWatch implements Disposable {
  readonly #file = openSync('/proc/thread-self/schedstat', 'r');
  readonly #buffer = Buffer.alloc(128);
  readonly #timer: NodeJS.Timeout;
  #lastMs = this.#spentMs();
  #longestMs = 0;

  constructor() {
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  get longestMs(): number {
    this.#look();
    return this.#longestMs;
  }

  /** Begins a measurement. */
  restart(): void {
    this.#look();
    this.#longestMs = 0;
  }

  #look(): void {
    const nowMs = this.#spentMs();
    this.#longestMs = Math.max(this.#longestMs, nowMs - this.#lastMs);
    this.#lastMs = nowMs;
  }

  #spentMs(): number {
    const length = readSync(this.#file, this.#buffer, 0, this.#buffer.length, 0);
    return Number(this.#buffer.toString('latin1', 0, length).split(' ', 1)[0]) / NS_PER_MS;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    closeSync(this.#file);
  }
}
