import type { RunId } from '#src/core/ids.ts';
import type { Kernel } from '#src/kernel/kernel.ts';
import { OutputShelf } from '#src/runs/run-output.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import { type TraceContext, traceparentOf } from '#src/tracing/trace-context.ts';
import type { Store } from '#storage/store.ts';
import { configOf } from '../document.ts';
import type { LiveNotebook } from '../live-notebook.ts';
import { keepOutputs } from '../saved-outputs.ts';
import type { CacheMode } from './execution-request.ts';
import { type ErrorHint, RunRecorder } from './run-recorder.ts';
import type { WorkPlan } from './work-plan.ts';

export interface RunWorkOptions {
  readonly runId: RunId;
  /** The trace of the run. */
  readonly trace: TraceContext | undefined;
  readonly cellIds: readonly string[];
  /** Cells whose settings came with the request; the kernel gets them before anything runs. */
  readonly configured: readonly string[];
  readonly cacheMode: CacheMode;
  /** Cells with structural errors were asked for as well: they, and what needs them, end with the reason. */
  readonly skipsBroken: boolean;
  readonly live: LiveNotebook;
  readonly runs: RunRepository;
  readonly store: Store;
  readonly hint: ErrorHint;
}

/** Returns the work of a durable run of cells. Its end writes the run's record and the last outputs of what ran. */
export function runWork(options: RunWorkOptions): WorkPlan {
  const { runId, trace, cellIds, configured, cacheMode, skipsBroken, live, runs, store, hint } = options;
  const recorder = new RunRecorder(cellIds, cacheMode !== 'no-store', hint);
  recorder.skipsBroken = skipsBroken;
  recorder.isPreparing = configured.length > 0;
  const cellsOf = (ids: readonly string[]) => ids.flatMap((id) => live.view.get(id) ?? []);
  const configure = (kernel: Kernel) =>
    kernel.configure(
      Object.fromEntries(cellsOf(configured).map((cell) => [cell.id, configOf(cell.options)])),
    );
  const execute = (kernel: Kernel) => {
    recorder.isPreparing = false;
    return kernel.execute({
      cellIds,
      codes: cellsOf(cellIds).map((cell) => cell.code),
      fresh: cacheMode !== 'default',
      traceparent: trace && traceparentOf(trace),
    });
  };
  return {
    runId,
    trace,
    steps: configured.length > 0 ? [configure, execute] : [execute],
    follow: (message) => recorder.follow(message),
    conclude: (done) => recorder.verdict(done, live.view),
    cancelRequested: () => {
      recorder.cancelRequested = true;
    },
    ended({ status, failure }) {
      const { output, shelf } = recorder.output(live.view, new OutputShelf(!store.isFull));
      runs.finish(live.workspaceId, runId, { status, error: failure, output, assets: shelf.assets });
      if (output.stored) keepOutputs(store, live, recorder.ran, shelf.contents);
    },
  };
}
