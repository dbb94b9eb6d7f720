/**
 * A reporter for `node:test` that sends each test to the runner, which is the parent of this process. Node.js loads it by
 * `--test-reporter`.
 */
import { fileReported } from './file-reported.ts';
import type { Report, TestReport } from './messages.ts';

interface TestEvent {
  readonly type: string;
  readonly data: {
    readonly name: string;
    readonly nesting: number;
    readonly skip?: string | boolean;
    readonly details?: {
      readonly type?: string;
      readonly duration_ms?: number;
      readonly error?: Error & { readonly failureType?: string; readonly cause?: unknown };
    };
  };
}

/** Lines of an error that are shown; the difference of two values is among the first. */
const MAX_ERROR_CHARS = 6_000;

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type === 'test:dequeue') {
      const begun: Report = { op: 'begun', name: data.name };
      process.send?.(begun);
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const { name, nesting, skip, details } = data;
    const error = details?.error;
    // A suite that only has failed tests says nothing more than these. The suite of a lane's file is the last event of the file.
    const says =
      details?.type !== 'suite' || (type === 'test:fail' && error?.failureType !== 'subtestsFailed');
    if (says) {
      const outcome = type === 'test:fail' ? 'failed' : isSkipped(skip) ? 'skipped' : 'passed';
      const text = outcome === 'failed' ? textOf(error) : outcome === 'skipped' ? String(skip) : undefined;
      const message: TestReport = {
        op: 'test',
        name,
        outcome,
        ms: Math.round(details?.duration_ms ?? 0),
        ...(text !== undefined && { text }),
        ...(error?.failureType === 'subtestsFailed' && { ofFile: true }),
      };
      process.send?.(message);
    }
    if (nesting === 0 && details?.type === 'suite') fileReported(name);
  }
  yield '';
}

/** `skip` is absent, or false, for tests that ran. */
function isSkipped(skip: string | boolean | undefined): boolean {
  return skip !== undefined && skip !== false;
}

/** Returns the error that the test threw, with the frames of our own files. */
function textOf(error: (Error & { readonly cause?: unknown }) | undefined): string {
  const cause = error?.cause ?? error;
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause ?? 'failed');
  const lines = text
    .split('\n')
    .filter((line) => !/^\s+at .*(node:internal|node:async_hooks|node_modules)/.test(line));
  const shown = lines.join('\n');
  return shown.length > MAX_ERROR_CHARS ? `${shown.slice(0, MAX_ERROR_CHARS)} …` : shown;
}
