/** A user who talks with an agent: prompts with and without keys, cancels, closes the conversation and opens it again. */
import type { RunStatus } from '#src/contract/wire/run.ts';
import { AnswerJudge, type ShownEntry } from '../judges/answers.ts';
import type { Ledger } from '../judges/ledger.ts';
import { type Life, type Nature, type World, world } from '../world/world.ts';
import { isAnswer, type Outcome, type SimulatedClient } from './client.ts';
import { Complaints } from './complaints.ts';
import { Expectations } from './expectations.ts';
import { Follower } from './follower.ts';
import { type Behaviour, promptText } from './prompt-text.ts';
import type { SimulatedUser } from './simulated-user.ts';

const SESSIONS = '/api/v3/agent-sessions';
const SHAPES: readonly Behaviour[] = [
  'say',
  'say',
  'say',
  'work',
  'work',
  'hang',
  'hang',
  'break',
  'falter',
  'refuse',
];
/** How many prompts wait for the ends of their runs. */
const WAITING = 0.15;
const ATTEMPTS = 6;
const LAST_ATTEMPTS = 80;
const LAST_PAUSE_MS = 250;
/** Nobody waits for a later deadline. */
const MAX_EXPECTED_S = 60;
/** A wait after the limit of a prompt, longer than its end may take then (`PROMPT_PATIENCE_MS`). */
const LIMIT_PATIENCE_MS = 3000;

/** A notebook of another user, and the environment of its session. */
interface SharedNotebook {
  readonly notebook: string;
  readonly environment: string;
}

export class Talker implements SimulatedUser {
  readonly name: string;
  readonly acknowledged = new Set<string>();
  readonly #client: SimulatedClient;
  readonly #ledger: Ledger;
  readonly #notebooks: () => readonly SharedNotebook[];
  readonly #world: World = world();
  readonly #nature: Nature = world().nature;
  readonly #random = world().ofUsers.fork();
  readonly #complaints = new Complaints(world());
  readonly #expectations: Expectations;
  #environment: string | undefined;
  #conversation: string | undefined;
  #isOpen = false;
  #follower: Follower | undefined;
  #last: string | undefined;
  #count = 0;
  #calm: Promise<void> | undefined;

  /** `notebooks` returns those of others. */
  constructor(
    client: SimulatedClient,
    ledger: Ledger,
    name: string,
    notebooks: () => readonly SharedNotebook[],
  ) {
    this.#notebooks = notebooks;
    this.#client = client;
    this.#ledger = ledger;
    this.name = name;
    this.#expectations = new Expectations(this.#world, client, ledger, name);
  }

  get sessionId(): string | undefined {
    return this.#conversation;
  }

  get runsPath(): string | undefined {
    return this.#conversation && `${this.#path}/runs`;
  }

  get #path(): string {
    return `${SESSIONS}/${this.#conversation}`;
  }

  waitFor(calm: Promise<void>): void {
    this.#calm = calm;
  }

  stopFollowing(): void {
    this.#follower?.stop();
  }

  async live(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#world.sleep(-Math.log(1 - this.#random.next()) * this.#nature.thinkMs);
      await this.#calm;
      if (!isOver()) await this.#act();
    }
  }

  async #act(): Promise<void> {
    if (this.#environment === undefined) return this.#createEnvironment();
    if (!this.#isOpen) return this.#open();
    const dice = this.#random.next();
    if (dice < 0.52) return this.#askSomething();
    if (dice < 0.55) return this.#outlastLimit();
    if (dice < 0.75) return this.#cancel(this.#last);
    if (dice < 0.9) return this.#read();
    if (dice < 0.93) return this.#close();
    if (dice < 0.96) return this.#useShortConversation();
    return this.#openAgain();
  }

  /** Has an environment of its own, or that of somebody's notebook. */
  async #createEnvironment(): Promise<void> {
    const others = this.#notebooks().map(({ environment }) => environment);
    if (others.length > 0 && this.#random.is(0.5)) {
      this.#environment = this.#random.pick(others);
      return;
    }
    const key = `${this.name}-environment`;
    const answer = await this.#client.post('/api/v3/execution-environments', {}, { key });
    if (isAnswer(answer) && answer.status === 201) this.#environment = String(answer.json.environmentId);
  }

  async #open(): Promise<void> {
    const id = this.#conversation === undefined ? {} : { id: this.#conversation };
    const key = this.#conversation === undefined ? { key: `${this.name}-conversation` } : {};
    const answer = await this.#client.post(SESSIONS, { environmentId: this.#environment, ...id }, key);
    if (!isAnswer(answer)) return;
    if (answer.json.code === 'environment_closed') {
      this.#environment = undefined;
      return;
    }
    if (answer.status !== 200 && answer.status !== 201)
      return this.#complaints.complain('the opening', answer);
    this.#conversation = String(answer.json.sessionId);
    this.#isOpen = true;
    this.#follower ??= new Follower(this.#client, this.#ledger, this.name, {
      sessionId: this.#conversation,
      path: `${this.#path}/events`,
    });
  }

  /** Opens another conversation, asks something there, and deletes it, which is refused while it is busy. */
  async #useShortConversation(): Promise<void> {
    const opened = await this.#client.post(SESSIONS, this.#shortConversation());
    if (!isAnswer(opened) || opened.status !== 201) return;
    const path = `${SESSIONS}/${String(opened.json.sessionId)}`;
    const behaviour = this.#random.pick(SHAPES);
    const token = `p${this.name}x${++this.#count}`;
    const asked = await this.#client.post(`${path}/runs`, { prompt: promptText({ behaviour, token }) });
    await this.#world.sleep(this.#random.next() * 40);
    if (this.#random.is(0.3))
      this.#complaints.requireSound('the closing', await this.#client.ask('DELETE', path));
    const deleted = await this.#client.ask('DELETE', `${path}/conversation`);
    this.#complaints.requireSound('the deletion of a conversation', deleted);
    if (isAnswer(deleted) && deleted.status === 204) {
      const gone = await this.#client.get(path);
      if (isAnswer(gone) && gone.status !== 404)
        this.#complaints.complain('a conversation that was deleted', gone);
    } else if (isAnswer(asked) && asked.status === 202) {
      const cancelled = await this.#client.post(`/api/v3/runs/${String(asked.json.runId)}/cancel`, {});
      this.#complaints.requireSound('a cancellation', cancelled);
    }
  }

  /** Returns the request for a conversation of its own, or of somebody's notebook. */
  #shortConversation(): object {
    const notebooks = this.#notebooks();
    if (notebooks.length === 0 || this.#random.is(0.5)) return { environmentId: this.#environment };
    const { environment, notebook } = this.#random.pick(notebooks);
    return { environmentId: environment, notebookSessionId: notebook };
  }

  /** Opens what is open already. */
  async #openAgain(): Promise<void> {
    if (this.#conversation !== undefined) await this.#open();
  }

  async #close(): Promise<void> {
    this.#ledger.noteStop(this.#conversation!);
    const answer = await this.#client.ask('DELETE', this.#path);
    if (isAnswer(answer) && answer.status < 300) {
      this.#isOpen = false;
      if (this.#random.is(0.5)) this.#environment = undefined;
    }
    this.#complaints.requireSound('the closing', answer);
  }

  async #askSomething(): Promise<void> {
    await this.#prompt(this.#random.pick(SHAPES), true, this.#random.is(0.15) ? 1 : undefined);
  }

  /** Asks something. With a key it is sent again until there is an answer. Resolves with whether the prompt was taken. */
  async #prompt(behaviour: Behaviour, cancels: boolean, timeoutS: number | undefined): Promise<boolean> {
    const hasKey = this.#random.is(0.6);
    const token = `p${this.name}x${++this.#count}`;
    const key = hasKey ? `${this.name}-${this.#count}` : undefined;
    const body = { prompt: promptText({ behaviour, token }), ...(timeoutS && { timeoutS }) };
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const fromMs = this.#world.nowMs;
      const { life } = this.#client.server;
      const leavesAfterMs = this.#random.is(0.05) ? this.#random.next() * 10 : undefined;
      const waits = this.#random.is(WAITING) ? { query: 'wait=1' } : {};
      const outcome = await this.#client.post(`${this.#path}/runs`, body, { key, leavesAfterMs, ...waits });
      const span = { from: fromMs, to: this.#world.nowMs };
      const submission = { kind: 'submission', session: this.#conversation!, token, ...span } as const;
      if (isAnswer(outcome) && (outcome.status === 202 || outcome.status === 200)) {
        const runId = String(outcome.json.runId);
        this.acknowledged.add(runId);
        this.#last = runId;
        this.#noteDeadlines(runId, timeoutS, life);
        if (attempt === 0)
          this.#ledger.noteTaken(runId, this.#conversation!, fromMs, this.#client.server.life);
        this.#ledger.history.push({ ...submission, key: key ?? token, answer: { runId } });
        if (cancels && this.#random.is(0.3)) await this.#cancelSoon(runId);
        return true;
      }
      if (isAnswer(outcome)) {
        if (outcome.json.code === 'session_closed') this.#isOpen = false;
        this.#complaints.requireExpected('a prompt', outcome);
        return false;
      }
      this.#ledger.history.push({ ...submission, key: key ?? token, answer: 'unknown' });
      if (key === undefined) return false;
      await this.#world.sleep(20 + this.#random.next() * 300);
      await this.#calm;
    }
    return false;
  }

  /** Asks something that has no answer, after the prompt before it, and lets the time of the prompt pass. */
  async #outlastLimit(): Promise<void> {
    const { promptLimitS } = this.#nature;
    const isOwn = promptLimitS > MAX_EXPECTED_S || this.#random.is(0.5);
    await this.#cancel(this.#last);
    if (await this.#prompt('hang', false, isOwn ? 1 : undefined))
      await this.#world.sleep((isOwn ? 1 : promptLimitS) * 1000 + LIMIT_PATIENCE_MS);
  }

  /** A prompt has the limit of the server, and perhaps a nearer one of its own. */
  #noteDeadlines(runId: string, timeoutS: number | undefined, life: Life): void {
    if (timeoutS !== undefined) this.#ledger.noteDeadline(runId, timeoutS);
    const limitS = Math.min(timeoutS ?? Number.POSITIVE_INFINITY, this.#nature.promptLimitS);
    if (limitS < MAX_EXPECTED_S) this.#expectations.expectPromptDeadline(runId, life, limitS);
  }

  async #cancelSoon(runId: string): Promise<void> {
    await this.#world.sleep(this.#random.next() * 30);
    await this.#cancel(runId);
  }

  async #cancel(runId: string | undefined): Promise<void> {
    if (runId === undefined) return;
    this.#ledger.noteCancel(runId);
    const answer = await this.#client.post(`/api/v3/runs/${runId}/cancel`, {});
    if (isAnswer(answer) && answer.status === 202) this.#ledger.noteCancelled(runId);
    this.#complaints.requireSound('a cancellation', answer);
  }

  async #read(): Promise<void> {
    const all = [...this.acknowledged];
    if (all.length === 0) return;
    const runId = this.#random.is(0.6) ? all.at(-1)! : this.#random.pick(all);
    const fromMs = this.#world.nowMs;
    const answer = await this.#client.get(`/api/v3/runs/${runId}`);
    if (!isAnswer(answer)) return;
    if (answer.status !== 200) return this.#complaints.complain(`the acknowledged run ${runId}`, answer);
    const isStale = answer.json.stale === true;
    this.#ledger.history.push({
      kind: 'run-read',
      runId,
      status: answer.json.status as RunStatus,
      isStale,
      from: fromMs,
      to: this.#world.nowMs,
    });
    if (isStale && this.#random.is(0.5)) await this.#cancel(runId);
  }

  /** A conversation that was opened is there after a restart. */
  async inspect(): Promise<void> {
    if (this.#conversation === undefined) return;
    const answer = await this.#client.get(this.#path);
    if (isAnswer(answer) && answer.status !== 200)
      this.#complaints.complain('the conversation, after a restart,', answer);
  }

  async useOnceMore(): Promise<string | undefined> {
    const follower = this.#follower;
    if (follower === undefined) return undefined;
    follower.rest();
    const token = `p${this.name}last`;
    let answer: Outcome = 'unknown';
    for (let attempt = 0; attempt < LAST_ATTEMPTS; attempt++) {
      if (this.#environment === undefined) await this.#createEnvironment();
      if (!this.#isOpen) await this.#open();
      answer = await this.#client.post(`${this.#path}/runs`, {
        prompt: promptText({ behaviour: 'say', token }),
      });
      if (isAnswer(answer) && answer.json.code === 'session_closed') this.#isOpen = false;
      if (isAnswer(answer) && answer.status === 202) break;
      await this.#world.sleep(LAST_PAUSE_MS);
    }
    if (!isAnswer(answer) || answer.status !== 202)
      return `the conversation of ${this.name} takes no prompt any more: ${JSON.stringify(answer)}`;
    const runId = String(answer.json.runId);
    for (let attempt = 0; attempt < LAST_ATTEMPTS; attempt++) {
      await this.#world.sleep(LAST_PAUSE_MS);
      if (this.#ledger.hasSeenEnd(this.name, runId)) return this.#wrongInEntries();
    }
    return `the end of the prompt ${runId} does not reach the subscriber ${this.name}`;
  }

  /** Each prompt is in the conversation at most once, and a completed one has its answer. */
  async #wrongInEntries(): Promise<string | undefined> {
    const texts: { readonly role: string; readonly text: string }[] = [];
    const judge = new AnswerJudge(this.#world, `a reader of the conversation of ${this.name}`);
    for (let after = ''; ; ) {
      const page = await this.#client.get(`${this.#path}/entries`, `limit=100${after}`);
      if (!isAnswer(page) || page.status !== 200) return `the entries of ${this.name} cannot be listed`;
      for (const entry of page.json.items as ShownEntry[]) {
        judge.takeEntry(entry);
        texts.push({ role: entry.role, text: JSON.stringify(entry) });
      }
      const { nextCursor } = page.json;
      if (typeof nextCursor !== 'string') break;
      after = `&after=${encodeURIComponent(nextCursor)}`;
    }
    for (let number = 1; number <= this.#count; number++) {
      const form = new RegExp(`\\bp${this.name}x${number}\\b`);
      const asked = texts.filter(({ role, text }) => role === 'user' && form.test(text));
      if (asked.length > 1)
        return `the conversation of ${this.name} has the prompt ${number} ${asked.length} times`;
    }
    const isAnswered = texts.some(
      ({ role, text }) => role === 'assistant' && text.includes(`p${this.name}last`),
    );
    return isAnswered ? undefined : `the last answer is not in the conversation of ${this.name}`;
  }
}
