/** The trace members in the record of a run, and the span of the run. */
import {
  childOf,
  parseTraceparent,
  type TraceContext,
  traceparentOf,
} from '#src/base/tracing/trace-context.ts';
import type { Tracer } from '#src/base/tracing/tracer.ts';
import type { RunRecord } from '#storage/records/runs.ts';
import type { RunDocument } from './run-document.ts';

type Trace = RunRecord['trace'];

/** Returns the trace members for the record of a run that `parent` caused. */
export function traceFrom(parent: TraceContext | undefined): Trace {
  if (parent === undefined) return undefined;
  return { traceparent: traceparentOf(childOf(parent)), parentSpanId: parent.spanId };
}

/** Returns the context for the effects of the run; undefined when the run belongs to no trace. */
export function contextOf(trace: Trace): TraceContext | undefined {
  return trace === undefined ? undefined : parseTraceparent(trace.traceparent);
}

/** Records the span of a run that has ended, even if an earlier server process began the run. */
export function recordSpan(
  tracer: Tracer | undefined,
  trace: Trace,
  { kind, status, error, createdAt }: RunDocument,
): void {
  const context = contextOf(trace);
  if (trace === undefined || context === undefined) return;
  tracer?.record({
    name: `run ${kind}`,
    kind: 'internal',
    context,
    parentSpanId: trace.parentSpanId,
    startMs: Date.parse(createdAt),
    endMs: Date.now(),
    attributes: { 'troupe.run.kind': kind, 'troupe.run.status': status },
    error: status === 'failed' ? (error?.code ?? 'failed') : undefined,
  });
}
