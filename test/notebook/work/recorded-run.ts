import type { BridgeDone, KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import { NotebookView } from '#src/notebook/open/view.ts';
import { RunRecorder } from '#src/notebook/work/run-recorder.ts';

/** Returns the view of a notebook with the cells a, b, c and d. */
export function viewOf(): NotebookView {
  return new NotebookView(
    ['a', 'b', 'c', 'd'].map((id) => ({ cell_id: id, code: `code of ${id}`, options: {} })),
  );
}

/** Returns the recorder of a run of `requested` after these messages, and the view after them. */
export function record(requested: readonly string[], messages: readonly KernelMessage[]) {
  const recorder = new RunRecorder(requested, true);
  const view = viewOf();
  for (const message of messages) {
    recorder.follow(message, view);
    if (message.op === 'cell-op') view.applyCellOp(message);
  }
  return { recorder, view };
}

/** Applies the kernel's verdicts to the view and the run, as the end of a run does. */
export function conclude(recorder: RunRecorder, view: NotebookView, ended: BridgeDone): void {
  view.applyVerdicts(ended);
  recorder.verdict(ended, view);
}

/** Returns the status of each cell in the run's output. */
export function statusesOf(recorder: RunRecorder, view: NotebookView): string[] {
  return recorder
    .output(view)
    .output.parts.flatMap((part) => (part.type === 'cell-result' ? [part.status] : []));
}
