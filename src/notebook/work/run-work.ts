import { traceparentOf } from '#src/base/tracing/trace-context.ts';
import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import type { CacheMode, RunOutput } from '#src/contract/wire/run.ts';
import { OutputShelf } from '#src/runtime/runs/run-output.ts';
import type { BegunRun } from '#src/runtime/runs/run-repository.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import type { WorkPlan } from '../open/work-plan.ts';
import { configOf } from '../saved/document.ts';
import { keepOutputs } from '../saved/saved-outputs.ts';
import { codesOf } from './cell-work.ts';
import { PrintedWatch } from './printed-watch.ts';
import { type ErrorHint, RunRecorder } from './run-recorder.ts';

export interface RunWorkOptions {
  readonly run: Omit<BegunRun, 'json'>;
  readonly cellIds: readonly string[];
  /** The codes that cells run with in place of their present codes, by cell id; undefined when there are none. */
  readonly ownCodes?: ReadonlyMap<string, string> | undefined;
  /** Cells whose settings came with the request. The kernel gets these settings before any cell runs. */
  readonly configured: readonly string[];
  readonly cacheMode: CacheMode;
  /**
   * Whether the request skips cells with structural errors. These cells, and cells that need them, end with the reason.
   */
  readonly skipsBroken: boolean;
  /**
   * Whether the kernel gets its commands only once the run is on disk. A retry after a crash then finds the run, or the code has
   * never run.
   */
  readonly waitsForCommit: boolean;
  readonly live: LiveNotebook;
  readonly hint: ErrorHint;
}

const LOST_OUTPUT: RunOutput = {
  stored: true,
  parts: [
    { type: 'warning', code: 'output_lost', message: 'The output of this run could not be assembled.' },
  ],
};

/**
 * Returns the work of a durable run of cells. The run has the present code and settings of the cells, even if the cells are
 * edited before the kernel gets a command. The end of the work writes the run's record and the last outputs of the cells that
 * ran.
 */
export function runWork({ runs, store, log }: RunPlaneContext, options: RunWorkOptions): WorkPlan {
  const { runId, trace } = options.run;
  const { cellIds, configured, cacheMode, skipsBroken, live, hint } = options;
  const { waitsForCommit, ownCodes } = options;
  const recorder = new RunRecorder(cellIds, cacheMode !== 'no-store', hint);
  recorder.skipsBroken = skipsBroken;
  recorder.isPreparing = waitsForCommit || configured.length > 0;
  const present = codesOf(cellIds, live.view);
  const withOwn = (code: string, at: number) => ownCodes?.get(present.cellIds[at] ?? '') ?? code;
  const codes = ownCodes === undefined ? present : { ...present, codes: present.codes.map(withOwn) };
  const configs = Object.fromEntries(
    configured.flatMap((id) => live.view.get(id) ?? []).map(({ id, options }) => [id, configOf(options)]),
  );
  const configure = (kernel: Kernel) => kernel.configure(configs);
  const execute = (kernel: Kernel) => {
    recorder.isPreparing = false;
    const seq = kernel.execute({
      ...codes,
      fresh: cacheMode !== 'default',
      traceparent: trace && traceparentOf(trace),
    });
    if (ownCodes !== undefined) live.kernelRuns(ownCodes); // set only now, because the kernel must get the present codes after this command
    return seq;
  };
  const savePrinted = (cellIds: readonly string[]) => {
    if (store.isFull) return;
    const texts = cellIds.flatMap((id) => recorder.printedBy(id, live.view) ?? []);
    if (texts.length > 0) runs.printed.put(live.workspaceId, runId, texts);
  };
  const printed = cacheMode === 'no-store' ? undefined : new PrintedWatch(savePrinted);
  /** Returns the output of the run. An error is logged and not thrown, because the run has to end in any case. */
  const outputOf = () => {
    try {
      return recorder.output(live.view, new OutputShelf(!store.isFull));
    } catch (error) {
      log.error({ err: error, runId }, 'the output of a run could not be put together');
      return { output: LOST_OUTPUT, shelf: new OutputShelf(false) };
    }
  };
  return {
    runId,
    trace,
    ...(waitsForCommit ? { heldUntil: () => store.durable() } : {}),
    steps: configured.length > 0 ? [configure, execute] : [execute],
    follow: (message) => {
      recorder.follow(message, live.view);
      printed?.follow(message, live.view);
    },
    conclude: (done) => recorder.verdict(done, live.view),
    cancelRequested: () => {
      recorder.cancelRequested = true;
    },
    ended({ status, failure }) {
      printed?.[Symbol.dispose]();
      const { output, shelf } = outputOf();
      runs.finish(live.workspaceId, runId, { status, error: failure, output, assets: shelf.assets });
      if (output.stored && output !== LOST_OUTPUT) keepOutputs(store, live, recorder.ran, shelf.contents);
    },
  };
}
