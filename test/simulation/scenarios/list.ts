/**
 * Scenarios: journeys of one client whose steps are written down, in worlds whose delays a seed decides. Random users meet most races, but a
 * crowd of requests at one moment is too rare among their acts.
 */
import { DEAF, HANG, print, sleep } from '../kernel/cell-code.ts';
import type { Outcome } from '../users/client.ts';
import { ENVIRONMENTS, SESSIONS } from './paths.ts';
import type { Stage } from './stage.ts';

export interface Scenario {
  readonly name: string;
  /** The rule, as a sentence. */
  readonly rule: string;
  /** How many workers the server has; one process by default. */
  readonly workers?: number;
  readonly perform: (stage: Stage) => Promise<void>;
}

const CROWD = 50;
const WORKERS = 3;
/** Longer than a kernel takes to begin. */
const BEGUN_MS = 60;

const executionOf = (code: string, timeoutS?: number) => ({
  type: 'cells',
  cells: [{ cellId: 'a', code }],
  ...(timeoutS && { timeoutS }),
});
const isOk = (outcome: Outcome) => typeof outcome === 'object' && outcome.status < 300;

/** Sends code to the cell `a`. Resolves with the run, once its code is about to run. */
async function begin(
  stage: Stage,
  sessionId: string,
  code: string,
  { timeoutS, pauseMs = BEGUN_MS }: { readonly timeoutS?: number; readonly pauseMs?: number } = {},
): Promise<string> {
  const { json } = await stage.do('POST', `${SESSIONS}/${sessionId}/executions`, executionOf(code, timeoutS));
  await stage.world.sleep(pauseMs);
  return String(json.runId);
}

/** Cancels a run fifty times at once. */
async function cancelInACrowd(stage: Stage, runId: string): Promise<void> {
  const { tally } = await stage.crowd(CROWD, () => stage.ask('POST', `/api/v3/runs/${runId}/cancel`, {}));
  stage.requireTally(
    tally,
    { '202': undefined, '200': undefined, '409 run_finished': undefined },
    'fifty cancellations',
  );
  stage.require((tally['202'] ?? 0) > 0, 'no cancellation was accepted');
}

async function executeInACrowd(stage: Stage): Promise<void> {
  const sessionId = await stage.session({ a: '' });
  stage.follow(sessionId);
  const { tally, answers } = await stage.crowd(CROWD, () =>
    stage.ask('POST', `${SESSIONS}/${sessionId}/executions`, executionOf(HANG)),
  );
  stage.requireTally(tally, { '202': 1, '409 session_busy': CROWD - 1 }, 'fifty executions');
  const runId = String(answers.find(isOk)?.json.runId);
  await cancelInACrowd(stage, runId);
  const { status } = await stage.ended(runId);
  stage.require(status === 'cancelled', `the cancelled run has ended as ${String(status)}`);
  await stage.requireOneEnd(runId);
  await stage.ready(sessionId);
  const runs = await stage.runsOf(sessionId);
  stage.require(runs.length === 1, `fifty executions have made ${runs.length} runs`);
}

async function openInACrowd(stage: Stage): Promise<void> {
  const environmentId = await stage.environment();
  const ids: string[] = [];
  for (let index = 0; index < CROWD; index++) ids.push(await stage.notebook({ a: '' }));
  const { tally } = await stage.crowd(CROWD, (index) =>
    stage.ask('POST', SESSIONS, { notebookId: ids[index], environmentId }),
  );
  stage.requireTally(tally, { '202': 1, '409 environment_occupied': CROWD - 1 }, 'fifty openings');
}

async function changeInACrowd(stage: Stage): Promise<void> {
  const id = await stage.notebook({ a: '' });
  const { json } = await stage.do('GET', `/api/v3/notebooks/${id}`);
  const { tally } = await stage.crowd(CROWD, (index) =>
    stage.ask('PATCH', `/api/v3/notebooks/${id}`, {
      expectedUpdatedAt: json.updatedAt,
      variables: { PLACE: String(index) },
    }),
  );
  stage.requireTally(tally, { '200': 1, '409 stale_update': CROWD - 1 }, 'fifty changes of one version');
}

async function changeCellInACrowd(stage: Stage): Promise<void> {
  const sessionId = await stage.session({ a: print('first') });
  const { json } = await stage.do('GET', `${SESSIONS}/${sessionId}`);
  const [cell] = json.cells as { readonly version: unknown }[];
  const { tally } = await stage.crowd(CROWD, (index) =>
    stage.ask('POST', `${SESSIONS}/${sessionId}/changes`, {
      changes: [{ type: 'set-code', cellId: 'a', code: print(`t${index}`), version: cell?.version }],
    }),
  );
  stage.requireTally(tally, { '200': 1, '409 stale_update': CROWD - 1 }, 'fifty changes of one cell');
}

/** Sends one request with one key fifty times at once: they make one resource, whose id is in the member `id` of each answer. */
async function createInACrowd(stage: Stage, path: string, body: object, id: string): Promise<void> {
  const key = stage.newKey();
  const { tally, answers } = await stage.crowd(CROWD, () => stage.ask('POST', path, body, key));
  const expected = { '201': undefined, '409 idempotency_in_progress': undefined };
  stage.requireTally(tally, expected, `fifty requests to ${path} with one key`);
  const ids = new Set(answers.filter(isOk).map(({ json }) => json[id]));
  stage.require(ids.size === 1, `fifty requests to ${path} with one key have made ${ids.size} resources`);
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'crowded-executions',
    rule: 'one of fifty executions that come at once is accepted, fifty cancellations are all answered, and the run ends once',
    perform: executeInACrowd,
  },
  {
    name: 'crowded-executions-at-workers',
    rule: 'one of fifty executions at different workers is accepted, fifty cancellations are all answered, and the run ends once',
    workers: WORKERS,
    perform: executeInACrowd,
  },
  {
    name: 'crowded-cancellations-of-a-deaf-run',
    rule: 'a run whose kernel has to be killed accepts each of fifty cancellations before its end, and ends once',
    perform: async (stage) => {
      const sessionId = await stage.session({ a: '' });
      stage.follow(sessionId);
      const runId = await begin(stage, sessionId, DEAF);
      await cancelInACrowd(stage, runId);
      const { status, error } = await stage.ended(runId);
      const { code } = (error ?? {}) as { readonly code?: string };
      stage.require(
        status === 'cancelled' && code === 'kernel_killed',
        `the run has ended as ${status} with the error ${code}`,
      );
      await stage.requireOneEnd(runId);
      await stage.ready(sessionId);
    },
  },
  {
    name: 'closing-during-a-cancel',
    rule: 'the closing of a session during a cancellation ends its run once, as cancelled',
    perform: async (stage) => {
      const sessionId = await stage.session({ a: '' });
      stage.follow(sessionId);
      const runId = await begin(stage, sessionId, DEAF);
      await stage.do('POST', `/api/v3/runs/${runId}/cancel`, {});
      const closed = await stage.do('DELETE', `${SESSIONS}/${sessionId}`);
      stage.require(closed.json.status === 'closed', 'the session is not closed after its closing');
      const { json } = await stage.do('GET', `/api/v3/runs/${runId}`);
      stage.require(json.status === 'cancelled', `after the closing the run is ${String(json.status)}`);
      await stage.requireOneEnd(runId);
    },
  },
  {
    name: 'cancel-at-the-end',
    rule: 'a cancellation at the moment at which its run ends leaves a run that is over and a ready session, and does not reach the next run',
    perform: async (stage) => {
      const sessionId = await stage.session({ a: '' });
      for (let ms = 0; ms < 10; ms++) {
        const { json } = await stage.do(
          'POST',
          `${SESSIONS}/${sessionId}/executions`,
          executionOf(sleep(ms)),
        );
        await stage.world.sleep(ms);
        const { tally } = await stage.crowd(1, () =>
          stage.ask('POST', `/api/v3/runs/${json.runId}/cancel`, {}),
        );
        stage.requireTally(tally, { '202': undefined, '409 run_finished': undefined }, 'a cancellation');
        const { status } = await stage.ended(String(json.runId));
        stage.require(
          status === 'completed' || (status === 'cancelled' && tally['202'] === 1),
          `a cancellation with the outcome ${JSON.stringify(tally)} leaves a run that is ${String(status)}`,
        );
        await stage.ready(sessionId);
        const next = await begin(stage, sessionId, sleep(40), { pauseMs: 0 });
        const { status: after } = await stage.ended(next);
        stage.require(after === 'completed', `the run after a cancelled one is ${String(after)}`);
      }
    },
  },
  {
    name: 'deadlines',
    rule: 'a deadline kills a kernel that ignores its interrupt, and affects neither a run that ends earlier nor the next run',
    perform: async (stage) => {
      const sessionId = await stage.session({ a: '' });
      const quick = await begin(stage, sessionId, print('quick'), { timeoutS: 1 });
      stage.require(
        (await stage.ended(quick)).status === 'completed',
        'a run before its deadline has failed',
      );
      const next = await begin(stage, sessionId, sleep(1500));
      stage.require(
        (await stage.ended(next)).status === 'completed',
        'the deadline of a run ended the next one',
      );
      for (const [code, reason] of [
        [HANG, /^This took longer/],
        [DEAF, /the kernel was killed/],
      ] as const) {
        const runId = await begin(stage, sessionId, code, { timeoutS: 1 });
        const { status, error } = await stage.ended(runId);
        const failure = (error ?? {}) as { readonly code?: string; readonly message?: string };
        stage.require(
          status === 'failed' && failure.code === 'timed_out' && reason.test(failure.message ?? ''),
          `work beyond its deadline has ended as ${String(status)} with ${JSON.stringify(error)}`,
        );
        await stage.ready(sessionId);
      }
    },
  },
  {
    name: 'crowded-openings',
    rule: 'of fifty openings in one environment that reach different workers, one succeeds',
    workers: WORKERS,
    perform: openInACrowd,
  },
  {
    name: 'crowded-changes',
    rule: 'of fifty changes of one version of a notebook that reach different workers, one succeeds',
    workers: WORKERS,
    perform: changeInACrowd,
  },
  {
    name: 'crowded-changes-of-a-cell',
    rule: 'of fifty changes of one version of a cell that reach different workers, one succeeds',
    workers: WORKERS,
    perform: changeCellInACrowd,
  },
  {
    name: 'crowded-creations',
    rule: 'fifty creations with one key that reach different workers make one notebook, one environment and one conversation',
    workers: WORKERS,
    perform: async (stage) => {
      await createInACrowd(stage, '/api/v3/notebooks', { serialization: { cells: [] } }, 'id');
      await createInACrowd(stage, ENVIRONMENTS, {}, 'environmentId');
      const environmentId = await stage.environment();
      await createInACrowd(stage, '/api/v3/agent-sessions', { environmentId }, 'sessionId');
    },
  },
];
