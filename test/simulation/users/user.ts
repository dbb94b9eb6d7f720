/**
 * A user with one notebook, its session, and a second notebook that serves as a register. Each next act is drawn at random. The user
 * must not know more about the server than answers and events.
 */

import type { Ledger } from '../judges/ledger.ts';
import { DEAF, EXIT, FAIL, HANG, lastWords, print, sleep } from '../kernel/cell-code.ts';
import { type Life, type Nature, type World, world } from '../world/world.ts';
import { type Answer, isAnswer, type Outcome, type SimulatedClient } from './client.ts';
import { CloseCalls } from './close-calls.ts';
import { Complaints, shownOf } from './complaints.ts';
import { Expectations } from './expectations.ts';
import { Follower } from './follower.ts';
import { IN_PROGRESS, KeyedRequests } from './keyed-requests.ts';
import { OwnRuns } from './own-runs.ts';
import { NEW_REGISTER, Registers } from './registers.ts';
import type { SimulatedUser } from './simulated-user.ts';

/** The cells of the notebook. Requests bring the code of the first ones; the last one is edited and runs as it is. */
const SENT_CELLS = ['a', 'b'] as const;
const EDITED_CELL = 'c';
const ATTEMPTS = 6;
const LAST_ATTEMPTS = 80;
const LAST_PAUSE_MS = 250;
/** As long as a kernel that hangs may delay the last run: the time of a start, the pause of a failed session, and another start. */
const LAST_PATIENCE_MS = 60_000;
/** How often a user sends code that ends its kernel, until the session has failed. */
const WEAR_ATTEMPTS = 12;
const WEAR_PAUSE_MS = 60;
/** The time after which a failed session may be woken. */
const RETRY_PAUSE_MS = 5000;
/** How often a user reads a session while it is opened or closed. */
const PEEKING = 0.6;
/** How many acts are code that outlasts its cancellation, where users have code that ignores interrupts. */
const OUTLASTING = 0.04;
/** How many executions wait for the ends of their runs. */
const WAITING = 0.1;
/** How many runs a user in a hurry sends while another one may still be running. */
const MAX_HURRIED = 10;

export class User implements SimulatedUser {
  readonly name: string;
  notebook: string | undefined;
  register: string | undefined;
  #wasOpened = false;
  readonly #client: SimulatedClient;
  readonly #ledger: Ledger;
  readonly #others: () => readonly User[];
  readonly #skips: (act: number) => boolean;
  #acts = 0;
  readonly #world: World = world();
  readonly #nature: Nature = world().nature;
  readonly #random = world().ofUsers.fork();
  readonly #complaints = new Complaints(world());
  readonly #requests: KeyedRequests;
  readonly #registers: Registers;
  readonly #expectations: Expectations;
  readonly #runs: OwnRuns;
  readonly #closeCalls: CloseCalls;
  #environment: string | undefined;
  #isOpen = false;
  /** The last acknowledged state of the session; undefined while a request that changes it is under way. */
  #acknowledgedState: 'open' | 'closed' | undefined;
  #follower: Follower | undefined;
  #count = 0;
  #calm: Promise<void> | undefined;

  constructor(
    client: SimulatedClient,
    ledger: Ledger,
    name: string,
    others: () => readonly User[],
    skips: (act: number) => boolean,
  ) {
    this.#skips = skips;
    this.#client = client;
    this.#ledger = ledger;
    this.name = name;
    this.#others = others;
    const shared = { world: this.#world, client, random: this.#random, complaints: this.#complaints };
    this.#requests = new KeyedRequests(shared);
    const newToken = () => `w${name}x${++this.#count}`;
    this.#registers = new Registers({ ...shared, ledger, newToken });
    this.#expectations = new Expectations(this.#world, client, ledger, name);
    this.#runs = new OwnRuns({
      ...shared,
      ledger,
      expectations: this.#expectations,
      user: this,
      cellId: SENT_CELLS[0],
    });
    this.#closeCalls = new CloseCalls({
      world: this.#world,
      random: this.#random,
      newToken: () => `t${name}x${++this.#count}`,
      run: (token, code, timeoutS) => this.#runOnce(token, code, timeoutS),
      cancel: (runId) => this.#runs.cancel(runId),
      interrupt: () => this.#interrupt(),
    });
  }

  get acknowledged(): Set<string> {
    return this.#runs.acknowledged;
  }

  get follower(): Follower | undefined {
    return this.#follower;
  }

  get sessionId(): string | undefined {
    return this.notebook;
  }

  get runsPath(): string | undefined {
    return this.#wasOpened ? `${this.session}/executions` : undefined;
  }

  /** The environment of its session, for others. */
  get environment(): string | undefined {
    return this.#environment;
  }

  get session(): string {
    return `/api/v3/notebook-sessions/${this.notebook}`;
  }

  waitFor(calm: Promise<void>): void {
    this.#calm = calm;
  }

  stopFollowing(): void {
    this.#follower?.stop();
  }

  async useOnceMore(): Promise<string | undefined> {
    const follower = this.#follower;
    if (follower === undefined) return undefined;
    follower.rest();
    let answer: Outcome = 'unknown';
    const untilMs =
      this.#world.nowMs +
      (this.#nature.stubbornKernels > 0 ? LAST_PATIENCE_MS : LAST_ATTEMPTS * LAST_PAUSE_MS);
    while (this.#world.nowMs < untilMs) {
      if (this.#environment === undefined) await this.#createEnvironment();
      if (!this.#isOpen) await this.#open();
      const body = { type: 'cells', cells: [{ cellId: SENT_CELLS[0], code: print(`last-${this.name}`) }] };
      answer = await this.#client.post(`${this.session}/executions`, body);
      if (isAnswer(answer) && answer.json.code === 'session_closed') this.#isOpen = false;
      if (isAnswer(answer) && answer.json.code === 'session_failed')
        await this.#client.post(`${this.session}/wake`, {});
      if (isAnswer(answer) && answer.status === 202) break;
      await this.#world.sleep(LAST_PAUSE_MS);
    }
    if (!isAnswer(answer) || answer.status !== 202)
      return `the session of ${this.name} takes no run any more: ${shownOf(answer)}`;
    const runId = String(answer.json.runId);
    for (let attempt = 0; attempt < LAST_ATTEMPTS; attempt++) {
      const run = await this.#client.get(`/api/v3/runs/${runId}`);
      const isOver = isAnswer(run) && run.json.status !== 'running';
      if (isOver && this.#ledger.hasSeenEnd(this.name, runId)) return undefined;
      if (isOver && attempt === LAST_ATTEMPTS - 1)
        return `the end of the run ${runId} does not reach the subscriber ${this.name}`;
      await this.#world.sleep(LAST_PAUSE_MS);
    }
    return `the last run ${runId} of ${this.name} does not end`;
  }

  async live(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#world.sleep(-Math.log(1 - this.#random.next()) * this.#nature.thinkMs);
      await this.#calm;
      if (!isOver() && !(this.#isOpen && this.#skips(this.#acts++))) await this.#act();
    }
  }

  async #act(): Promise<void> {
    if (this.notebook === undefined) return this.#create();
    if (this.register === undefined) return this.#createRegister();
    if (this.#environment === undefined) return this.#createEnvironment();
    if (!this.#isOpen) return this.#wasOpened && this.#random.is(0.2) ? this.#changeSaved() : this.#open();
    if (this.#random.is(this.#nature.bursts)) return this.#burst();
    if (this.#nature.deaf && this.#random.is(OUTLASTING))
      return this.#random.is(0.5) ? this.#closeCalls.cancelDeaf() : this.#closeCalls.outlastGrace();
    const dice = this.#random.next();
    if (dice < 0.3) return void (await this.#execute());
    if (dice < 0.36) return this.#executePresent();
    if (dice < 0.43) return this.#hurry();
    if (dice < 0.55) return this.#runs.cancel(this.#runs.last);
    if (dice < 0.62) return this.#runs.readOne();
    if (dice < 0.67) return this.#runs.list();
    if (dice < 0.77) return void (await this.#edit());
    if (dice < 0.85) return this.#writeRegister();
    if (dice < 0.88) return this.#interrupt();
    if (dice < 0.9) return this.#runs.deleteOne();
    if (dice < 0.905) return this.#runs.deleteRunning();
    if (dice < 0.91) return this.#wearOut();
    if (dice < 0.93) return this.#sleepAndWake();
    if (dice < 0.95) return this.#useEnvironments();
    if (dice < 0.965) return this.#race();
    if (dice < 0.978) return this.#closeCalls.cancelAtEnd();
    if (dice < 0.985) return this.#closeCalls.sayLastWords();
    if (dice < 0.99) return this.#closeCalls.runOutOfTime();
    return this.#close();
  }

  async inspect(): Promise<void> {
    const before = this.#acknowledgedState;
    if (before === undefined) return;
    const answer = await this.#client.get(this.session);
    if (!isAnswer(answer) || this.#acknowledgedState !== before) return;
    if (stateOf(answer) !== before)
      this.#complaints.complain(`the session of ${this.name}, which was ${before},`, answer);
  }

  // ── Beginnings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #create(): Promise<void> {
    const cells = [...SENT_CELLS, EDITED_CELL].map((id) => ({
      cell_id: id,
      code: print(`${this.name}-${id}`),
    }));
    const serialization = { app: { options: { app_title: this.name } }, cells };
    this.notebook = await this.#requests.created(
      '/api/v3/notebooks',
      { serialization },
      'id',
      `${this.name}-nb`,
    );
    if (this.notebook !== undefined)
      for (const { cell_id } of cells)
        this.#ledger.noteCode(this.#cell(cell_id), `${this.name}-${cell_id}`)();
  }

  /** Gives the notebook another title while its session is closed. */
  async #changeSaved(): Promise<void> {
    const path = `/api/v3/notebooks/${this.notebook}`;
    const read = await this.#client.get(path);
    if (!isAnswer(read) || read.status !== 200) return;
    const { updatedAt, serialization } = read.json as { updatedAt: string; serialization: object };
    const app = { options: { app_title: `${this.name} ${++this.#count}` } };
    const body = { expectedUpdatedAt: updatedAt, serialization: { ...serialization, app } };
    this.#complaints.requireSound(
      'a change of the saved notebook',
      await this.#client.ask('PATCH', path, { body }),
    );
  }

  async #createRegister(): Promise<void> {
    const body = { serialization: NEW_REGISTER };
    this.register = await this.#requests.created('/api/v3/notebooks', body, 'id', `${this.name}-register`);
  }

  async #createEnvironment(): Promise<void> {
    this.#environment = await this.#requests.created(
      '/api/v3/execution-environments',
      {},
      'environmentId',
      `${this.name}-environment${++this.#count}`,
    );
  }

  async #open(): Promise<void> {
    const body = { notebookId: this.notebook, environmentId: this.#environment };
    this.#acknowledgedState = undefined;
    this.#expectations.noteStart();
    const [answer] = await Promise.all([
      this.#client.post('/api/v3/notebook-sessions', body),
      this.#random.is(PEEKING) ? this.#peek('open') : undefined,
    ]);
    if (!isAnswer(answer)) return;
    if (answer.status !== 202 && answer.status !== 409)
      return this.#complaints.complain('the opening', answer);
    if (answer.json.code === 'environment_closed') {
      this.#environment = undefined; // its own closing was carried out, although the answer was lost
      return;
    }
    if (answer.status === 202) {
      this.#acknowledgedState = 'open';
      this.#expectations.expectStart(() => this.#statusOfSession());
    }
    this.#isOpen = true;
    this.#wasOpened = true;
    this.#follower ??= new Follower(this.#client, this.#ledger, this.name, {
      sessionId: this.notebook!,
      path: `${this.session}/events`,
    });
  }

  async #close(): Promise<void> {
    this.#ledger.noteStop(this.notebook!);
    this.#acknowledgedState = undefined;
    this.#expectations.noteStart();
    const fromMs = this.#world.nowMs;
    const { life } = this.#client.server;
    if (this.#random.is(0.3)) void this.#closeAgain();
    const closing = this.#client.ask('DELETE', this.session).then((outcome) => {
      if (isAnswer(outcome)) this.#expectations.requireClosedSoon(fromMs, life);
      return outcome;
    });
    const [answer] = await Promise.all([
      closing,
      this.#random.is(PEEKING) ? this.#peek('closed') : undefined,
      this.#random.is(0.1) ? this.#closeTwice() : undefined,
    ]);
    if (isAnswer(answer) && answer.status === 200) {
      this.#isOpen = false;
      this.#acknowledgedState = 'closed';
    }
    this.#complaints.requireSound('the closing', answer);
  }

  /** Reads the session while it is opened or closed. A crash must not undo a change that a read has shown. */
  async #peek(becomes: 'open' | 'closed'): Promise<void> {
    await this.#world.sleep(this.#random.next() * 4);
    const answer = await this.#client.get(this.session);
    if (!isAnswer(answer) || this.#acknowledgedState !== undefined) return;
    if (stateOf(answer) === becomes) this.#acknowledgedState = becomes;
  }

  async #statusOfSession(): Promise<string | undefined> {
    const answer = await this.#client.get(this.session);
    return isAnswer(answer) ? String(answer.json.status) : undefined;
  }

  /** Closes the session a second time. The caller waits for it, because it would close a session that was opened meanwhile. */
  async #closeTwice(): Promise<void> {
    await this.#world.sleep(this.#random.next() * 5);
    this.#complaints.requireSound('another closing', await this.#client.ask('DELETE', this.session));
  }

  /** Asks for things that a session in its closing refuses, or does not do twice. */
  async #closeAgain(): Promise<void> {
    await this.#world.sleep(this.#random.next() * 5);
    const path = this.session;
    for (const act of ['interrupt', 'wake', 'hibernate'])
      this.#complaints.requireSound(`a request to ${act}`, await this.#client.post(`${path}/${act}`, {}));
  }

  /** Lets kernels die early until the session has failed, and uses the failed session. */
  async #wearOut(): Promise<void> {
    for (let attempt = 0; attempt < WEAR_ATTEMPTS; attempt++) {
      const token = `t${this.name}x${++this.#count}`;
      const code = this.#random.is(0.5) ? lastWords(token) : `${print(token)}\n${EXIT}`;
      const body = { type: 'cells', cells: [{ cellId: SENT_CELLS[0], code }] };
      const answer = await this.#client.post(`${this.session}/executions`, body);
      if (isAnswer(answer) && answer.json.code === 'session_failed') break;
      await this.#world.sleep(WEAR_PAUSE_MS);
    }
    await this.#interrupt();
    if (this.#random.is(0.3)) return this.#close();
    await this.#world.sleep(this.#random.next() * 2 * RETRY_PAUSE_MS);
    if (this.#random.is(0.3)) await this.#interrupt();
    if (this.#random.is(0.2)) return this.#close();
    this.#complaints.requireSound('the waking', await this.#client.post(`${this.session}/wake`, {}));
  }

  async #sleepAndWake(): Promise<void> {
    this.#complaints.requireSound(
      'the hibernation',
      await this.#client.post(`${this.session}/hibernate`, {}),
    );
    await this.#world.sleep(this.#random.next() * this.#nature.thinkMs);
    if (this.#random.is(0.3)) {
      this.#complaints.requireSound(
        'another hibernation',
        await this.#client.post(`${this.session}/hibernate`, {}),
      );
      await this.#interrupt();
    }
    if (this.#random.is(0.2)) return this.#close();
    this.#complaints.requireSound('the waking', await this.#client.post(`${this.session}/wake`, {}));
  }

  /** Closes an environment that is in use, and opens and closes one that is not. */
  async #useEnvironments(): Promise<void> {
    const path = '/api/v3/execution-environments';
    const used = await this.#client.ask('DELETE', `${path}/${this.#environment}`);
    if (isAnswer(used) && used.status !== 409 && this.#acknowledgedState === 'open')
      this.#complaints.complain('the closing of an environment in use', used);
    if (isAnswer(used) && used.status < 300) this.#environment = undefined;
    const made = await this.#client.post(path, {});
    if (!isAnswer(made) || made.status !== 201) return;
    const one = `${path}/${String(made.json.environmentId)}`;
    const closed = await this.#client.ask('DELETE', one);
    if (!isAnswer(closed)) return;
    if (closed.status >= 300) return this.#complaints.complain('the closing of an empty environment', closed);
    const body = { notebookId: this.notebook, environmentId: made.json.environmentId };
    const refused = await this.#client.post('/api/v3/notebook-sessions', body);
    if (isAnswer(refused) && refused.status < 300)
      this.#complaints.complain('the opening in a closed environment', refused);
  }

  // ── Runs ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Runs a cell with code of its own, with or without settings and a key. With a key it is sent again until there is an answer.
   * Resolves with whether it was accepted. `expectedUpdatedAt` is the only version of the notebook for which it may be accepted.
   */
  async #execute(cancels = this.#random.is(0.4), expectedUpdatedAt?: string): Promise<boolean> {
    const hasKey = expectedUpdatedAt === undefined && this.#random.is(0.6);
    const token = `${hasKey ? 'k' : 't'}${this.name}x${++this.#count}`;
    const key = hasKey ? `${this.name}-${this.#count}` : undefined;
    const cellId = this.#random.pick(SENT_CELLS);
    const config = this.#random.is(0.3) ? { hideCode: this.#random.is(0.5) } : undefined;
    const cell = { cellId, code: `${print(token)}\n${this.#shape()}`, ...(config && { config }) };
    const timeoutS = this.#random.is(0.1) ? 1 : undefined;
    const body = { type: 'cells', cells: [cell], expectedUpdatedAt, ...(timeoutS && { timeoutS }) };
    const query = this.#random.is(WAITING) ? 'wait=1' : undefined;
    const known = this.#ledger.noteCode(this.#cell(cellId), token);
    let refusedInLife: unknown;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const fromMs = this.#world.nowMs;
      const { life } = this.#client.server;
      const leavesAfterMs = this.#random.is(0.05) ? this.#random.next() * 10 : undefined;
      const path = `${this.session}/executions`;
      const outcome = await (key === undefined
        ? this.#client.post(path, body, { leavesAfterMs, query })
        : this.#requests.postTwice(path, body, key, { leavesAfterMs, query }));
      const span = { from: fromMs, to: this.#world.nowMs };
      const submission = { kind: 'submission', session: this.notebook!, token, ...span } as const;
      if (isAnswer(outcome) && (outcome.status === 202 || outcome.status === 200)) {
        known();
        const runId = this.#runs.accepted(outcome.json.runId, attempt === 0 ? fromMs : undefined);
        if (timeoutS !== undefined) this.#noteDeadline(runId, timeoutS, life);
        this.#ledger.history.push({ ...submission, key: key ?? token, answer: { runId } });
        if (outcome.status === 200) this.#runs.noteRead(runId, outcome, span);
        if (cancels) await this.#runs.cancelSoon(runId);
        else if (this.#random.is(0.3)) await this.#runs.watch(runId);
        return true;
      }
      if (isAnswer(outcome)) {
        this.#complaints.requireExpected('a run', outcome);
        const present = this.#client.server.life;
        if (refusedInLife === present && outcome.json.code === IN_PROGRESS && attempt === ATTEMPTS - 1)
          this.#complaints.complain(
            `the key ${key}, with which the same request was refused before,`,
            outcome,
          );
        if (key === undefined || (refusedInLife === undefined && this.#random.is(0.7))) return false;
        if (outcome.json.code !== IN_PROGRESS) {
          if (refusedInLife !== undefined) return false;
          refusedInLife = present;
        }
        await this.#requests.pause();
        continue;
      }
      refusedInLife = undefined; // this request may still be carried out
      this.#ledger.history.push({ ...submission, key: key ?? token, answer: 'unknown' });
      if (key === undefined) return false;
      await this.#requests.pause();
      await this.#calm;
    }
    return false;
  }

  #noteDeadline(runId: string, timeoutS: number, life: Life): void {
    this.#ledger.noteDeadline(runId, timeoutS);
    this.#expectations.expectDeadline(runId, life, timeoutS);
  }

  /** Runs a cell with this code once. Resolves with the run; undefined when it was not taken, or nobody knows. */
  async #runOnce(token: string, code: string, timeoutS?: number): Promise<string | undefined> {
    const fromMs = this.#world.nowMs;
    const { life } = this.#client.server;
    const body = { type: 'cells', cells: [{ cellId: SENT_CELLS[0], code }], ...(timeoutS && { timeoutS }) };
    const outcome = await this.#client.post(`${this.session}/executions`, body);
    const submission = { kind: 'submission', session: this.notebook!, token, key: token } as const;
    const span = { from: fromMs, to: this.#world.nowMs };
    if (!isAnswer(outcome)) {
      this.#ledger.history.push({ ...submission, answer: 'unknown', ...span });
      return undefined;
    }
    this.#complaints.requireExpected('a run', outcome);
    if (outcome.status !== 202) return undefined;
    const runId = this.#runs.accepted(outcome.json.runId, fromMs);
    this.#ledger.history.push({ ...submission, answer: { runId }, ...span });
    if (timeoutS !== undefined) this.#noteDeadline(runId, timeoutS, life);
    return runId;
  }

  /** Sends two changes of one version of the notebook, of which at most one may be accepted. */
  async #race(): Promise<void> {
    const read = await this.#client.get(`/api/v3/notebooks/${this.notebook}`);
    if (!isAnswer(read) || read.status !== 200) return;
    const expectedUpdatedAt = String(read.json.updatedAt);
    const execution = this.#execute(false, expectedUpdatedAt);
    await this.#world.sleep(this.#random.next() * 3);
    const edit = this.#edit(SENT_CELLS[0], expectedUpdatedAt);
    const accepted = await Promise.all([execution, edit]);
    if (accepted.every(Boolean))
      this.#world.problem(`an execution and an edit of one version (${expectedUpdatedAt}) were accepted`);
  }

  /** Runs a cell as it is. */
  async #executePresent(): Promise<void> {
    const fromMs = this.#world.nowMs;
    const body = { type: 'cells', cells: [{ cellId: EDITED_CELL }] };
    const outcome = await this.#client.post(`${this.session}/executions`, body);
    if (!isAnswer(outcome)) return;
    if (outcome.status !== 202) return this.#complaints.requireExpected('a run', outcome);
    const runId = this.#runs.accepted(outcome.json.runId, fromMs);
    this.#ledger.notePresentRun(runId, this.#cell(EDITED_CELL), fromMs);
    if (this.#random.is(0.3)) await this.#runs.cancelSoon(runId);
  }

  #shape(): string {
    const quick = ['', '', sleep(5), sleep(40), sleep(300), HANG, HANG, `${sleep(20)}\n${sleep(20)}`, FAIL];
    if (this.#nature.deaf && this.#random.is(0.05)) return DEAF;
    return this.#random.is(0.02) ? EXIT : this.#random.pick(quick);
  }

  /** Sends one run after the other until the session takes one, while the run before ends, or is cancelled. */
  async #hurry(): Promise<void> {
    const before = this.#runs.last;
    const acts: Promise<unknown>[] = [this.#execute(false)];
    const cancelsAt = this.#random.below(MAX_HURRIED * 2);
    for (let sent = 0; sent < MAX_HURRIED; sent++) {
      await this.#world.sleep(this.#random.next() * 3);
      const last = this.#runs.last;
      if (sent === cancelsAt) acts.push(this.#runs.cancel(last));
      acts.push(this.#execute(false));
      if (last !== before && this.#random.is(0.3)) acts.push(this.#runs.read(last!).then(() => undefined));
      if (this.#runs.last !== last && last !== undefined)
        acts.push(this.#runs.read(last).then(() => undefined));
    }
    await Promise.all(acts);
  }

  async #interrupt(): Promise<void> {
    this.#ledger.noteStop(this.notebook!);
    this.#complaints.requireSound(
      'an interruption',
      await this.#client.post(`${this.session}/interrupt`, {}),
    );
  }

  // ── Edits ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Gives a cell, which is mostly the one that runs as it is, another code. Resolves with whether the edit was accepted. */
  async #edit(
    cellId: string = this.#random.is(0.7) ? EDITED_CELL : this.#random.pick(SENT_CELLS),
    expectedUpdatedAt?: string,
  ): Promise<boolean> {
    const token = `e${this.name}x${++this.#count}`;
    const known = this.#ledger.noteCode(this.#cell(cellId), token);
    const code = `${print(token)}\n${this.#random.is(0.3) ? HANG : sleep(4)}`;
    const outcome = await this.#client.post(`${this.session}/changes`, {
      changes: [{ type: 'set-code', cellId, code }],
      expectedUpdatedAt,
    });
    if (!isAnswer(outcome)) return false;
    if (outcome.status === 200) known();
    else this.#complaints.requireExpected('an edit', outcome);
    return outcome.status === 200;
  }

  /** An edit, a run and its cancellation, close together. */
  async #burst(): Promise<void> {
    const acts: Promise<unknown>[] = [this.#edit()];
    await this.#world.sleep(this.#random.next() * 3);
    acts.push(this.#random.is(0.5) ? this.#execute(true) : this.#executePresent());
    if (this.#random.is(0.5)) acts.push(this.#edit());
    if (this.#random.is(0.3)) acts.push(this.#interrupt());
    await Promise.all(acts);
  }

  /** Writes somebody's register. */
  #writeRegister(): Promise<void> {
    const { register } = this.#random.pick(this.#others());
    return register === undefined ? Promise.resolve() : this.#registers.write(register);
  }

  #cell(cellId: string): string {
    return `${this.name}/${cellId}`;
  }
}

/** Returns whether a session is open, by the answer to a request that reads it. */
function stateOf({ status, json }: Answer): 'open' | 'closed' {
  return status === 200 && json.status !== 'closed' ? 'open' : 'closed';
}
