/** A subscriber of a session during one life of a server, which checks the order of the events. */
import assert from 'node:assert/strict';
import type { Client } from '#src/contract/client/client.ts';
import type { RunStatus } from '#src/contract/wire/run.ts';

/** Follows one session of one server. */
export class Follower {
  /** The status with which each run ended, according to live and replayed events. */
  readonly ends = new Map<string, RunStatus>();
  /** The runs whose end was published live, not replayed. */
  readonly liveEnds = new Set<string>();
  /** The newest `updatedAt` of the notebook in the events. */
  savedAt = '';
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;
  #failure: unknown;

  constructor(client: Client, sessionId: string) {
    this.#done = this.#follow(client, sessionId).catch((error: unknown) => {
      // A lost connection is expected; events out of order are not.
      if (error instanceof assert.AssertionError) this.#failure = error;
    });
  }

  /** Stops following. Throws when the events were out of order. */
  async stop(): Promise<void> {
    this.#abort.abort(new Error('the life is over'));
    await this.#done;
    if (this.#failure !== undefined) throw this.#failure;
  }

  async #follow(client: Client, sessionId: string): Promise<void> {
    const { liveEnds } = this;
    let id = '';
    let last: { epoch: string; seq: number } | undefined;
    const onEventId = (next: string) => {
      id = next;
    };
    for await (const event of client.notebookSessions.follow(sessionId, {
      signal: this.#abort.signal,
      onEventId,
    })) {
      const live = /^([0-9a-f]+)-(\d+)$/.exec(id);
      const isReplay = live === null || event.type === 'session.replayed';
      if (event.type === 'session.replayed') last = { epoch: live?.[1] ?? '', seq: Number(live?.[2]) };
      else if (live !== null && last !== undefined) {
        assert.deepEqual(
          { epoch: live[1], seq: Number(live[2]) },
          { epoch: last.epoch, seq: last.seq + 1 },
          `an event is missing or out of order: ${JSON.stringify(event).slice(0, 200)}`,
        );
        last.seq++;
      }
      if (event.type === 'notebook.saved') this.savedAt = event.data.updatedAt;
      if (event.type !== 'run-status' || event.data.status === 'running') continue;
      const { runId, status } = event.data;
      assert.ok(isReplay || !liveEnds.has(runId), `the run ${runId} ended twice`);
      assert.equal(this.ends.get(runId) ?? status, status, `the run ${runId} ended in two ways`);
      if (!isReplay) liveEnds.add(runId);
      this.ends.set(runId, status);
    }
  }
}
