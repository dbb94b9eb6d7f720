import { type Api, MARK } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import type { Feed } from '../feed.ts';
import { Vendor } from '../load/vendor.ts';
import { spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { decoded, expected, type Wire } from '../wire.ts';

const unit: UnitOfWork = {
  name: 'prompt and cancel',
  count: 60,
  async prepareWith({ api }, vendor) {
    const id = await api.conversation('openai-compatible/hang');
    const feed = await api.follow(id);
    const wire = await api.wire();
    return {
      feed,
      async perform(count) {
        for (let i = 0; i < count; i++) await cancelAnswer(api, id, { vendor, feed, wire });
      },
    };
  },
};

/** How fast a cancel reaches the provider and the subscriber. */
export const agentCancel: Scenario = {
  name: 'agent-cancel',
  title:
    'A prompt, until its first text is on the event stream; then cancelling the answer: from the POST until the provider sees the connection close, and until the terminal status is on the event stream',
  limitS: 60,
  unit,
  async run(stage) {
    const vendor = await Vendor.start();
    stage.after(() => vendor.end());
    const { api } = await stage.server({ environment: vendor.environment });
    const id = await api.conversation('openai-compatible/hang');
    const feed = await api.follow(id);
    const wire = await api.wire();
    const begunMs: number[] = [];
    const closedMs: number[] = [];
    const terminalMs: number[] = [];
    const rounds = stage.count(100);
    for (let i = -5; i < rounds; i++) {
      const took = await cancelAnswer(api, id, { vendor, feed, wire });
      if (i < 0) continue;
      begunMs.push(took.begunMs);
      closedMs.push(took.closedMs);
      terminalMs.push(took.terminalMs);
    }
    feed.close();
    wire.close();
    return [
      spread('first text, from the POST of the prompt, of a model that answers at once', begunMs),
      spread('connection to the vendor closed', closedMs, { p99: 250 }),
      spread('terminal status', terminalMs, { p99: 250 }),
    ];
  },
};

/**
 * Sends a prompt, and cancels it once the model answers. Returns the milliseconds until the client and the model server have both
 * seen the end.
 */
async function cancelAnswer(
  api: Api,
  sessionId: string,
  { vendor, feed, wire }: { readonly vendor: Vendor; readonly feed: Feed; readonly wire: Wire },
) {
  const begun = feed.until('It has begun.');
  const askedAt = performance.now();
  const { runId } = decoded<{ runId: string }>(expected(await wire.send(api.promptBytes(sessionId)), 202));
  const begunMs = (await begun) - askedAt;
  const cancelBytes = api.bytes('POST', `/api/v3/runs/${runId}/cancel`, {});
  const [left, cancelled, ready] = [vendor.left(), feed.until(MARK.cancelled), feed.until(MARK.ready)];
  const startedAt = performance.now();
  const [answer, leftAt, cancelledAt] = await Promise.all([wire.send(cancelBytes), left, cancelled]);
  expected(answer, 202);
  await ready;
  return {
    begunMs,
    closedMs: leftAt - performance.timeOrigin - startedAt,
    terminalMs: cancelledAt - startedAt,
  };
}
