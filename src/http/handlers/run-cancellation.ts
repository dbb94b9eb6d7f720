/**
 * Cancels runs. The home of a run's session cancels it, because only that worker knows the progress of the run. A request for one
 * run is forwarded to the home of the run. For a request with many runs, this worker asks the other homes.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { isPlausibleId, type RunId, type SessionId, type WorkspaceId } from '#src/base/ids.ts';
import type { RunCancellationResult, RunKind } from '#src/contract/wire/run.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { GuardRun } from './run-waiting.ts';

/** Interrupts the work of a run in a kernel or in an agent. */
export type StopRun = (kind: RunKind, workspaceId: WorkspaceId, sessionId: SessionId, runId: RunId) => void;

/** The question that workers ask each other. A worker skips the runs whose home it is not. */
interface Cancellations {
  readonly principal: Principal;
  readonly runIds: readonly string[];
}

/** Workers may die or release runs between two rounds, so the remaining runs are looked up again. This is the most rounds. */
const MAX_ROUNDS = 3;

type CancellationContext = Pick<RunPlaneContext, 'runs' | 'store' | 'cluster'>;

export class RunCancellation {
  readonly #context: CancellationContext;
  readonly #guard: GuardRun;
  readonly #stop: StopRun;

  constructor(context: CancellationContext, guard: GuardRun, stop: StopRun) {
    this.#context = context;
    this.#guard = guard;
    this.#stop = stop;
    const { cluster, store } = context;
    cluster.onAsked('cancel-runs', async (payload) => {
      const { principal, runIds } = payload as Cancellations;
      store.refresh();
      const results = runIds.flatMap((runId) =>
        this.#isHere(principal, runId) ? this.#try(principal, runId) : [],
      );
      await store.durable();
      return results;
    });
  }

  /** Cancels a run whose home is this worker. Throws `not_found`, `run_finished` or `conversation_read_only`. */
  cancel(principal: Principal, id: string): void {
    const { runs } = this.#context;
    if (!isPlausibleId(id)) throw notFound();
    const runId = id as RunId;
    this.#guard(principal, runId, 'control');
    runs.cancel(principal.workspaceId, runId, (kind, sessionId) =>
      this.#stop(kind, principal.workspaceId, sessionId, runId),
    );
  }

  /**
   * Cancels each run, and returns the results in the order of the ids. Returns a promise only when other workers are the homes of
   * some runs.
   */
  cancelAll(
    principal: Principal,
    runIds: readonly string[],
  ): RunCancellationResult[] | Promise<RunCancellationResult[]> {
    if (runIds.every((runId) => this.#isHere(principal, runId)))
      return runIds.map((runId) => this.#try(principal, runId));
    return this.#cancelEverywhere(principal, runIds);
  }

  async #cancelEverywhere(principal: Principal, runIds: readonly string[]): Promise<RunCancellationResult[]> {
    const known = new Map<string, RunCancellationResult>();
    const isElsewhere = (runId: string) => !known.has(runId) && !this.#isHere(principal, runId);
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const asked: Cancellations = { principal, runIds: runIds.filter(isElsewhere) };
      if (asked.runIds.length === 0) break;
      const answers = await this.#context.cluster.askOthers('cancel-runs', asked);
      for (const result of answers.flat() as RunCancellationResult[]) known.set(result.runId, result);
    }
    // The runs are cancelled in the turn of the reply, so that the idempotency record is in the commit of the cancellations.
    return runIds.map((runId) => {
      const result = known.get(runId);
      if (result !== undefined) return result;
      return this.#isHere(principal, runId) ? this.#try(principal, runId) : refused(runId, unreachable());
    });
  }

  /** Returns whether this worker is the home of the run, or the run does not exist. */
  #isHere({ workspaceId }: Principal, runId: string): boolean {
    const { runs, cluster } = this.#context;
    const home = isPlausibleId(runId) ? runs.reader.homeOf(workspaceId, runId) : undefined;
    return home === undefined || cluster.owns(workspaceId, home);
  }

  #try(principal: Principal, runId: string): RunCancellationResult {
    try {
      this.cancel(principal, runId);
      return { runId, status: 'cancelling', error: null };
    } catch (error) {
      if (error instanceof AppError) return refused(runId, error);
      throw error;
    }
  }
}

function refused(runId: string, { code, message }: AppError): RunCancellationResult {
  return { runId, status: null, error: { code, message } };
}

function unreachable(): AppError {
  return new AppError('unavailable', 'The process with this run has just ended. Try again in a moment.');
}
