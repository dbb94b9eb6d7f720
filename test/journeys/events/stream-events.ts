/** Received event streams of notebook sessions, in a form that journeys can compare. */
import assert from 'node:assert/strict';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const DATA = 'data: ';

export const eventsPath = (sessionId: string) => `/api/v3/notebook-sessions/${sessionId}/events`;

/** Returns the events of a stream's text, without the comments. */
export function eventsIn(text: string): NotebookStreamEvent[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith(DATA))
    .map((line) => JSON.parse(line.slice(DATA.length)));
}

/** Returns the event without its time and without the mark of missed events. */
export function bare(event: NotebookStreamEvent): object {
  const { time, missed, ...rest } = event;
  assert.match(time, RFC_3339);
  return rest;
}

/** Returns type and data, and the run where there is one. */
export function brief({ type, data, runId }: NotebookStreamEvent): unknown[] {
  return runId === undefined ? [type, data] : [type, data, runId];
}
