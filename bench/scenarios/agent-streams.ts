import { setTimeout as later } from 'node:timers/promises';
import type { Api } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { eventsPath } from '../feed.ts';
import { Readers } from '../load/readers.ts';
import { Vendor } from '../load/vendor.ts';
import { atMost, type Measure, median, spread } from '../measure.ts';
import { cpuMs, residentBytes } from '../processes.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { decoded, expected, type Wire } from '../wire.ts';

const TOKENS_A_SECOND = 50;
const MANY = 500;
const POLL_MS = 50;
const WATCH_MS = 200;
/** How long the last token may take to arrive. */
const DELIVERY_MS = 3_000;

const UNIT_CONVERSATIONS = 20;

const unit: UnitOfWork = {
  name: `token, of ${UNIT_CONVERSATIONS} conversations`,
  count: 4 * TOKENS_A_SECOND * UNIT_CONVERSATIONS,
  quickCount: TOKENS_A_SECOND * UNIT_CONVERSATIONS,
  async prepareWith({ api }, vendor) {
    return {
      async perform(count) {
        const seconds = Math.ceil(count / TOKENS_A_SECOND / UNIT_CONVERSATIONS);
        await converse(api, vendor, { conversations: UNIT_CONVERSATIONS, seconds }, (talk) => talk);
      },
    };
  },
};

/** The delay of tokens, and the cost of a conversation. */
export const agentStreams: Scenario = {
  name: 'agent-streams',
  title: `Answers of ${TOKENS_A_SECOND} tokens per second, from the provider's socket to a subscriber of each conversation`,
  limitS: 180,
  unit,
  async run(stage) {
    const vendor = await Vendor.start();
    stage.after(() => vendor.end());
    const few = await stream(stage, vendor, { conversations: 4, seconds: stage.quick ? 2 : 10 });
    const many = await stream(stage, vendor, { conversations: MANY, seconds: stage.quick ? 4 : 15 });
    return [
      spread('4 conversations', few.delaysMs, { p99: 5 }),
      spread(`${MANY} conversations`, many.delaysMs, { p99: 50 }),
      atMost(
        `${MANY} conversations, memory of the server for one`,
        many.conversationKiB,
        'KiB',
        200_000 / 1024,
      ),
      atMost(`${MANY} conversations, CPU of the server for one token`, many.tokenUs, 'µs'),
      atMost('4 conversations, CPU of the server for one token', few.tokenUs, 'µs'),
    ] satisfies Measure[];
  },
};

interface Load {
  readonly conversations: number;
  readonly seconds: number;
}

async function stream(stage: Stage, vendor: Vendor, load: Load) {
  const { api, pid, untilIdle, end } = await stage.server({ environment: vendor.environment });
  // The first answers make the server load code and reserve memory, which does not count as the cost of a conversation.
  await converse(api, vendor, { conversations: 50, seconds: stage.quick ? 1 : 2 }, async () => {});
  await untilIdle();
  const before = residentBytes(pid);
  const residents: number[] = [];
  let cpu = 0;
  const delaysMs = await converse(api, vendor, load, async (talk) => {
    const cpuBefore = cpuMs([pid]);
    const watch = setInterval(() => residents.push(residentBytes(pid)), WATCH_MS);
    await talk;
    clearInterval(watch);
    cpu = cpuMs([pid]) - cpuBefore;
  });
  await end();
  return {
    delaysMs,
    conversationKiB: (median(residents) - before) / 1024 / load.conversations,
    tokenUs: (cpu * 1000) / delaysMs.length,
  };
}

/** Runs the conversations and returns the delay of every token. Calls `watch` when the tokens begin. */
async function converse(
  api: Api,
  vendor: Vendor,
  { conversations, seconds }: Load,
  watch: (talk: Promise<void>) => Promise<void>,
): Promise<Float64Array> {
  const count = seconds * TOKENS_A_SECOND;
  const ids: string[] = [];
  for (let i = 0; i < conversations; i++) {
    ids.push(await api.conversation(`openai-compatible/stream-${TOKENS_A_SECOND}-${count}`));
  }
  const requests = ids.map((id) => api.bytes('GET', eventsPath(id)));
  const options = { port: api.endpoint.port, requests, count: conversations, stalled: false };
  const readers = await Readers.open(options);
  const wire = await api.wire();
  const runIds: string[] = [];
  for (const id of ids) {
    runIds.push(decoded<{ runId: string }>(expected(await wire.send(api.promptBytes(id)), 202)).runId);
  }
  wire.close();
  await vendor.waiting(conversations);
  readers.count();
  await watch(vendor.talk());
  await later(DELIVERY_MS);
  // Taken now, because the entries that arrive later repeat every token.
  const { delaysMs } = await readers.finish();
  vendor.finish();
  const polls = await api.wire();
  for (const runId of runIds) await over(api, polls, runId);
  polls.close();
  const tokens = count * conversations;
  if (delaysMs.length === tokens) return delaysMs;
  throw new Error(`${delaysMs.length} instead of ${tokens} tokens have arrived.`);
}

/** Resolves when the run has completed. Rejects when it ended otherwise. */
async function over(api: Api, wire: Wire, runId: string): Promise<void> {
  const request = api.bytes('GET', `/api/v3/runs/${runId}`);
  for (;;) {
    const answer = expected(await wire.send(request), 200);
    const { status, error } = decoded<{ status: string; error: unknown }>(answer);
    if (status === 'completed') return;
    if (status !== 'running') throw new Error(`A prompt ended as ${status}: ${JSON.stringify(error)}`);
    await later(POLL_MS);
  }
}
