/** Reports the progress of work on a notebook to a client, from the events of its session. */

import { unawaited } from '#src/base/async/unawaited.ts';
import { endOfText } from '#src/base/text/cut-text.ts';
import type { McpCall } from './mcp-call.ts';
import { eventsForTools } from './session-events.ts';

/**
 * How often a call without other news reports that it is still running, because clients take a silent server
 * for dead.
 */
const TICK_MS = 5_000;
const MAX_LINE_CHARS = 200;

/** Reports until the work ends. The reports follow the work; they never delay or fail it. */
export async function withProgress<T>(call: McpCall, work: () => Promise<T>): Promise<T> {
  if (!call.wantsProgress) return work();
  const beganAtMs = performance.now();
  const ticks = setInterval(
    () => call.report(`running for ${Math.round((performance.now() - beganAtMs) / 1000)} s`),
    TICK_MS,
  );
  const over = new AbortController();
  if (call.notebookId !== '')
    unawaited(
      follow(call, over.signal).catch(() => {}),
      'progress: the events of a call',
    ); // without events the ticks continue
  try {
    return await work();
  } finally {
    clearInterval(ticks);
    over.abort();
  }
}

async function follow(call: McpCall, signal: AbortSignal): Promise<void> {
  const { notebookId, report } = call;
  let isLive = false;
  /** The printed line that has no end yet: its text may come in pieces. */
  let open = '';
  for await (const event of eventsForTools({ ...call, signal }, notebookId, { observe: true })) {
    if (event.type === 'session.replayed') isLive = true;
    if (!isLive) continue;
    if (event.type === 'console-output') {
      const text = open + event.data.text;
      const line = text.trimEnd().split('\n').at(-1) ?? '';
      if (line !== '') report(endOfText(line, MAX_LINE_CHARS));
      open = endOfText(text.slice(text.lastIndexOf('\n') + 1), MAX_LINE_CHARS);
    } else if (event.type === 'cell-op' && event.data.status === 'running') {
      const { cellId } = event.data;
      if (cellId !== '__scratch__') report(`the cell ${cellId} runs`);
    } else if (event.type === 'session.startup') report(event.data.text);
  }
}
