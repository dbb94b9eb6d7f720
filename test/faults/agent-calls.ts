/**
 * Kills a server while an agent's tools work: before a call is carried out, during it, after it but before its result is
 * saved, at any commit, or at any time. After the restart the conversation continues with a history that the strictest
 * provider accepts, and nothing has run twice. A seed determines all choices.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import type { FaultPoint } from '#src/base/fault-points.ts';
import type { Client } from '#src/contract/client/client.ts';
import { httpStandIn } from '#test/datasource/http-stand-in.ts';
import { SeededRandom } from '#test/support/random.ts';
import { OWNER, type Owner } from '#test/support/server-fixture.ts';
import { type Exchange, startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { assertValidHistory } from '#test/support/stand-ins/vendor-rules.ts';
import { Victim } from './victim.ts';

/** The options of a run of `agentFaults`. */
export interface AgentFaultOptions {
  readonly seeds: Iterable<number>;
  /** The owner outlives the run: the servers that the run uses end with it. */
  readonly owner: Owner;
  readonly say: (line: string) => void;
}

/** The results of the run. */
export interface AgentFaultReport {
  readonly rounds: number;
  /** How often a server was killed at each moment; `none` means that the prompt ended before. */
  readonly endings: Readonly<Record<string, number>>;
  /** Calls that were interrupted by the kill, by whether their work was done. */
  readonly cutOff: { readonly done: number; readonly notDone: number };
}

type Tool = 'run_python' | 'query_datasource';
type Ending = { readonly point: string } | { readonly afterMs: number };

const MAX_PROMPT_MS = 20_000;
const POINTS: readonly FaultPoint[] = ['tool.called', 'tool.ran', 'turn.decided', 'turn.durable'];

/** The model and the database. Each piece of work has a name and leaves one line with it in a file or in the database. */
class World {
  readonly #queries: string[] = [];
  readonly #dataDir: string;
  model!: Awaited<ReturnType<typeof startScriptedModel>>;
  databasePort = 0;
  /** The first mistake in the requests to the model. */
  complaint: unknown;

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  async open(owner: Owner): Promise<void> {
    this.model = await startScriptedModel(owner);
    this.model.always((exchange) => this.#answer(exchange));
    const database = await httpStandIn(
      owner,
      ({ body }) => {
        this.#queries.push(/-- (.*)$/.exec(body)?.[1] ?? body);
        return { body: { id: 'q', columns: [{ name: 'one', type: 'integer' }], data: [[1]] } };
      },
      false,
    );
    this.databasePort = database.port;
  }

  /** Returns how often a piece of work was done. */
  timesDone(work: string): number {
    const file = join(this.#dataDir, 'workspaces', OWNER.workspaceId, 'files', 'done');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
    return [...lines, ...this.#queries].filter((line) => line === work).length;
  }

  /** Answers a prompt, which names a piece of work and a tool: first with one call of the tool, then with a final text. */
  #answer(exchange: Exchange): void {
    try {
      assertValidHistory(exchange.body.messages);
    } catch (error) {
      this.complaint = error;
    }
    if (exchange.body.messages.at(-1)?.role === 'tool') exchange.text('Done.').end();
    else {
      // Only the last line counts: earlier prompts may not have been answered.
      const [work, tool, pauseS] = exchange.asked.split('\n').at(-1)!.split('; ');
      const code = `import time\nwith open("done", "a") as file:\n    _ = file.write("${work}\\n")\ntime.sleep(${pauseS})`;
      const input = tool === 'run_python' ? { code } : { slug: 'counted', sql: `SELECT 1 -- ${work}` };
      exchange.text('I will.').calls([tool!, input]).end('tool_calls');
    }
  }
}

/** Runs every seed. Throws the first broken promise, with the command that repeats it. */
export async function driveAgentFaults({ seeds, owner, say }: AgentFaultOptions): Promise<AgentFaultReport> {
  const dataDir = mkdtempSync(join(tmpdir(), 'troupe-agent-faults-'));
  const world = new World(dataDir);
  await world.open(owner);
  const environment = {
    TROUPE_OPENAI_COMPATIBLE_URL: world.model.url,
    TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
    TROUPE_MODEL_CONTEXT_TOKENS: '1000000',
  };
  const start = (point?: string) => Victim.start(dataDir, point, environment);
  const endings: Record<string, number> = {};
  const cutOff = { done: 0, notDone: 0 };
  let rounds = 0;
  const sessions = await living(await start(), (client) => openSessions(client, world.databasePort));
  for (const seed of seeds) {
    const random = new SeededRandom(seed);
    const tool: Tool = random.next() < 0.6 ? 'run_python' : 'query_datasource';
    const ending: Ending =
      random.next() < 0.6
        ? { point: pointOf(random) }
        : { afterMs: random.below(tool === 'run_python' ? 400 : 60) };
    const [work, next] = [`${seed} before`, `${seed} after`];
    const sessionId = sessions[tool];
    try {
      const how = await playPrompt(await start('point' in ending ? ending.point : undefined), {
        sessionId,
        prompt: `${work}; ${tool}; ${random.below(3) / 10}`,
        ending,
      });
      endings[how] = (endings[how] ?? 0) + 1;
      const before = world.timesDone(work);
      const wasOpen = await living(await start(), (client) =>
        continueConversation(client, sessionId, `${next}; ${tool}; 0`),
      );
      assert.ifError(world.complaint);
      assert.equal(world.timesDone(work), before, 'nothing of the old prompt runs in the next life');
      assert.ok(before <= 1, 'nothing runs twice');
      assert.equal(world.timesDone(next), 1, 'the next prompt is carried out once');
      if (wasOpen) cutOff[before === 1 ? 'done' : 'notDone']++;
    } catch (error) {
      say(`seed ${seed}: again with  npm run faults -- --agents 1 --seed ${seed}`);
      say(`the data is in ${dataDir}`);
      throw error;
    }
    if (++rounds % 10 === 0) say(`${rounds} seeds`);
  }
  rmSync(dataDir, { recursive: true, force: true });
  return { rounds, endings, cutOff };
}

function pointOf(random: SeededRandom): string {
  const point = random.pick(POINTS);
  // Every prompt passes the points of a tool once, and those of a commit several times.
  return `${point}:${point.startsWith('tool.') ? 1 : 1 + random.below(6)}`;
}

/** Starts a server, uses it, and stops it in an orderly way. */
async function living<T>(victim: Victim, use: (client: Client) => Promise<T>): Promise<T> {
  try {
    const result = await use(victim.client);
    victim.end('SIGTERM');
    await victim.over();
    return result;
  } finally {
    victim.end('SIGKILL');
  }
}

/** Opens one conversation that works in a notebook, and another that only queries. */
async function openSessions(client: Client, port: number): Promise<Readonly<Record<Tool, string>>> {
  const { id: notebookId } = await client.notebooks.create();
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId, environmentId });
  await client.notebookSessions.waitUntilReady(notebookId);
  await client.agentSessions.open({ environmentId, notebookSessionId: notebookId });
  const connection = { kind: 'trino', url: `http://localhost:${port}`, catalog: 'c', schema: 's', user: 'u' };
  await client.datasources.create({ slug: 'counted', connection });
  const context = { datasourceSlugs: ['counted'] };
  const { sessionId } = await client.agentSessions.open({ environmentId, context });
  return { run_python: notebookId, query_datasource: sessionId };
}

interface Played {
  readonly sessionId: string;
  readonly prompt: string;
  readonly ending: Ending;
}

/** Sends one prompt and kills the server during it. Returns at which moment. */
async function playPrompt(victim: Victim, { sessionId, prompt, ending }: Played): Promise<string> {
  try {
    const played = (async () => {
      try {
        const { runId } = await victim.client.agentSessions.prompt(sessionId, prompt);
        if ('afterMs' in ending) {
          await Promise.race([later(ending.afterMs), victim.whenOver]);
          victim.end('SIGKILL');
          await victim.whenOver;
        } else await victim.client.waitForRun(runId, { signal: victim.signal });
      } catch (error) {
        if (!(await victim.explains(error))) throw error;
      }
    })();
    await Promise.race([played, later(MAX_PROMPT_MS)]);
    const isKilled = victim.isOver;
    victim.end('SIGKILL');
    await victim.over();
    await played;
    if (!isKilled) return 'none';
    return 'point' in ending ? ending.point.split(':')[0]! : 'timed';
  } finally {
    victim.end('SIGKILL');
  }
}

/** Continues the conversation. Returns whether a call had been left without a result. */
async function continueConversation(client: Client, sessionId: string, prompt: string): Promise<boolean> {
  const runs = [];
  for await (const run of client.agentSessions.eachRun(sessionId)) runs.push(run);
  const stale = runs.filter(({ status }) => status === 'running');
  assert.ok(stale.length <= 1 && stale.every((run) => run.stale === true), JSON.stringify(stale));
  const { runId } = await client.agentSessions.prompt(sessionId, prompt);
  const next = await client.waitForRun(runId);
  assert.equal(next.status, 'completed', JSON.stringify(next.error));
  const { entries, status } = await client.agentSessions.get(sessionId);
  assert.equal(status, 'ready');
  for (const { id } of stale) {
    await client.runs.cancel(id);
    assert.equal((await client.runs.get(id)).status, 'cancelled');
  }
  const ofStale = entries.filter(({ runId: of }) => stale.some(({ id }) => id === of));
  const results = ofStale.flatMap(({ content }) => content).filter((part) => part.type === 'tool-result');
  return results.some((part) => part.status === 'cancelled');
}
