/** What a server has promised of one notebook: what it acknowledged, and what it told subscribers. Judges later states. */
import assert from 'node:assert/strict';
import type { Notebook } from '#src/client/notebooks.ts';
import type { Run, RunStatus } from '#src/client/runs.ts';
import type { Follower } from './follower.ts';

export class Ledger {
  /** What the cell may hold: one code, or several while a change is not answered. */
  codes = new Set(['0']);
  /** Of the newest state of the notebook that was acknowledged or shown. */
  updatedAt = '';
  /** A request for a run that was not answered: it may have happened or not. */
  unanswered: { readonly key: string; readonly code: string } | undefined;
  /** Whether a life ended by violence since runs were last brought to an end. */
  mayBeStale = false;
  /** Acknowledged runs in order, with the terminal record once one was seen. */
  readonly #runs = new Map<string, Run | undefined>();
  readonly #ends = new Map<string, RunStatus>();

  /** A run was acknowledged, and with it the code that came along. */
  took(runId: string, code: string): void {
    this.codes = new Set([code]);
    this.unanswered = undefined;
    this.#runs.set(runId, undefined);
  }

  /** A run was read. */
  saw(run: Run): void {
    if (run.status === 'running' || !this.#runs.has(run.id)) return;
    this.#runs.set(run.id, run);
    this.#ends.set(run.id, run.status);
  }

  /** Subscribers were told. */
  heard({ ends, savedAt }: Follower): void {
    for (const [runId, status] of ends) {
      assert.equal(this.#ends.get(runId) ?? status, status, `the run ${runId} was told to end in two ways`);
      this.#ends.set(runId, status);
    }
    if (savedAt > this.updatedAt) this.updatedAt = savedAt;
  }

  judgeNotebook({ serialization, updatedAt }: Notebook): void {
    const code = serialization.cells[0]?.code ?? '';
    assert.ok(this.codes.has(code), `the cell holds ${code} and not one of ${[...this.codes].join(' | ')}`);
    assert.ok(updatedAt >= this.updatedAt, `the notebook of ${this.updatedAt} is that of ${updatedAt}`);
    if (this.unanswered === undefined) this.codes = new Set([code]);
    this.updatedAt = updatedAt;
  }

  /** Takes all runs of the session; answers the one that was cut off, if one was. */
  judgeRuns(listed: readonly Run[]): Run | undefined {
    const ids = listed.map(({ id }) => id);
    assert.deepEqual(ids, [...new Set(ids)].sort(), 'runs are listed once, oldest first');
    const known = ids.filter((id) => this.#runs.has(id));
    assert.deepEqual(known, [...this.#runs.keys()], 'every acknowledged run is there, in its order');
    const unknown = ids.length - known.length;
    assert.ok(unknown <= (this.unanswered === undefined ? 0 : 1), 'there is no run that nobody asked for');
    for (const run of listed) {
      const seen = this.#runs.get(run.id);
      if (seen !== undefined) assert.deepEqual(run, seen, 'a run that was over is as it was');
      const told = this.#ends.get(run.id);
      if (told !== undefined) assert.equal(run.status, told, 'what subscribers were told is true');
      if (run.status === 'running') assert.deepEqual([run.stale, this.mayBeStale], [true, true], run.id);
      this.saw(run);
    }
    const stale = listed.filter(({ status }) => status === 'running');
    assert.ok(stale.length <= 1, 'at most one run was cut off');
    return stale[0];
  }
}
