/**
 * Everything about one notebook that a server has acknowledged or has published to subscribers.
 * Checks later states against it.
 */
import assert from 'node:assert/strict';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Run, RunStatus } from '#src/contract/wire/run.ts';
import type { Follower } from './follower.ts';

/** The server's promises about one notebook. */
export class Ledger {
  /** The possible codes of the cell: several while a change has not been acknowledged. */
  codes = new Set(['0']);
  /** `updatedAt` of the newest state that was acknowledged or published. */
  updatedAt = '';
  /** A request for a run that got no response: it may have happened or not. */
  unanswered: { readonly key: string; readonly code: string } | undefined;
  /** Whether the server was killed after the last time at which all runs had ended. */
  mayBeStale = false;
  /** Acknowledged runs in order, each with its terminal record once that was read. */
  readonly #runs = new Map<string, Run | undefined>();
  readonly #ends = new Map<string, RunStatus>();
  readonly #liveEnds = new Set<string>();

  /** Records that a run, and the code sent with it, was acknowledged. */
  recordAcknowledged(runId: string, code: string): void {
    this.codes = new Set([code]);
    this.unanswered = undefined;
    this.#runs.set(runId, undefined);
  }

  /** Records a run that was read. */
  recordRun(run: Run): void {
    if (run.status === 'running' || !this.#runs.has(run.id)) return;
    this.#runs.set(run.id, run);
    this.#ends.set(run.id, run.status);
  }

  /** Records the events that subscribers received. */
  recordEvents({ ends, liveEnds, savedAt }: Follower): void {
    for (const runId of liveEnds) {
      assert.ok(!this.#liveEnds.has(runId), `the run ${runId} ended again in a later life`);
      this.#liveEnds.add(runId);
    }
    for (const [runId, status] of ends) {
      assert.equal(
        this.#ends.get(runId) ?? status,
        status,
        `the run ${runId} was reported to end in two ways`,
      );
      this.#ends.set(runId, status);
    }
    if (savedAt > this.updatedAt) this.updatedAt = savedAt;
  }

  checkNotebook({ serialization, updatedAt }: Notebook): void {
    const code = serialization.cells[0]?.code ?? '';
    assert.ok(this.codes.has(code), `the cell holds ${code} and not one of ${[...this.codes].join(' | ')}`);
    assert.ok(updatedAt >= this.updatedAt, `the notebook of ${this.updatedAt} is that of ${updatedAt}`);
    if (this.unanswered === undefined) this.codes = new Set([code]);
    this.updatedAt = updatedAt;
  }

  /** Checks all runs of the session. Returns the run that a kill interrupted, if there is one. */
  checkRuns(listed: readonly Run[]): Run | undefined {
    const ids = listed.map(({ id }) => id);
    assert.deepEqual(ids, [...new Set(ids)].sort(), 'runs are listed once, oldest first');
    const known = ids.filter((id) => this.#runs.has(id));
    assert.deepEqual(known, [...this.#runs.keys()], 'every acknowledged run is there, in its order');
    const unknown = ids.length - known.length;
    assert.ok(unknown <= (this.unanswered === undefined ? 0 : 1), 'there is no run that nobody asked for');
    for (const run of listed) {
      const seen = this.#runs.get(run.id);
      if (seen !== undefined) assert.deepEqual(run, seen, 'a run that was over is as it was');
      const reported = this.#ends.get(run.id);
      if (reported !== undefined)
        assert.equal(run.status, reported, 'the record has the status that subscribers received');
      if (run.status === 'running') assert.deepEqual([run.stale, this.mayBeStale], [true, true], run.id);
      this.recordRun(run);
    }
    const stale = listed.filter(({ status }) => status === 'running');
    assert.ok(stale.length <= 1, 'at most one run was cut off');
    return stale[0];
  }
}
