import assert from 'node:assert/strict';
import type { Client } from '#src/contract/client/client.ts';
import { eventually } from './processes.ts';

/** The number of things that are open on a server, or exist. */
export interface OpenThings {
  readonly notebooks: number;
  readonly sessions: number;
  readonly environments: number;
  readonly conversations: number;
  readonly kernels: number;
  readonly running: number;
}

/** Counts the open resources of the client's workspace, at most 100 of each kind. */
export async function openThings(client: Client): Promise<OpenThings> {
  const status = 'open';
  const [notebooks, sessions, environments, conversations, kernels, runs] = await Promise.all([
    client.notebooks.list({ limit: 100 }),
    client.notebookSessions.list({ status, limit: 100 }),
    client.executionEnvironments.list({ status, limit: 100 }),
    client.agentSessions.list({ status, limit: 100 }),
    client.kernels(),
    client.runs.list({ status: 'running' }),
  ]);
  return {
    notebooks: notebooks.items.length,
    sessions: sessions.items.length,
    environments: environments.items.length,
    conversations: conversations.items.length,
    kernels: kernels.items.length,
    running: runs.items.length,
  };
}

/** Waits until as much is open as before. */
export async function eventuallyAsBefore(client: Client, before: OpenThings, what: string): Promise<void> {
  let now = before;
  const isAsBefore = async () => {
    now = await openThings(client);
    return JSON.stringify(now) === JSON.stringify(before);
  };
  await eventually(`as much is open as before ${what}`, isAsBefore).catch(() =>
    assert.deepEqual(now, before, what),
  );
}
