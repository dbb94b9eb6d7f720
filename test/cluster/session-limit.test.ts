/** The limits of sessions, of the whole server and of one workspace, where sessions are opened in several workers at once. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const LIMIT = 3;
const WORKSPACE_LIMIT = 2;
const WORKSPACES = 9;

const server = await startChildServer(test, {
  TROUPE_WORKERS: '3',
  TROUPE_MAX_SESSIONS: String(LIMIT),
  TROUPE_WORKSPACE_MAX_SESSIONS: String(WORKSPACE_LIMIT),
});

/** Sends a request in a workspace. Returns its status and its body. */
async function sendIn<T>(workspaceId: string, method: string, path: string, body?: unknown) {
  const caller = { ...OWNER, workspaceId };
  const answer = await sendRaw(server.baseUrl, method, `/api/v3${path}`, caller, { body });
  return { status: answer.status, body: answer.body as T };
}

/**
 * Makes a notebook and an environment, in a new workspace unless one is named. Returns a function that opens the
 * notebook.
 */
async function newOpening(name: string, knownWorkspaceId?: string) {
  const workspaceId = knownWorkspaceId ?? (await server.client.workspaces.create({ name })).id;
  const notebook = { title: name, serialization: { cells: [] } };
  const { body: made } = await sendIn<{ id: string }>(workspaceId, 'POST', '/notebooks', notebook);
  const environment = await sendIn<{ environmentId: string }>(workspaceId, 'POST', '/execution-environments');
  const opening = { notebookId: made.id, environmentId: environment.body.environmentId };
  const open = async () => (await sendIn<unknown>(workspaceId, 'POST', '/notebook-sessions', opening)).status;
  const close = async () =>
    (await sendIn<unknown>(workspaceId, 'DELETE', `/notebook-sessions/${made.id}`)).status;
  return { open, close };
}

test('the limit of sessions holds when workspaces of all workers open sessions at once', async () => {
  const openings = await Promise.all(Array.from({ length: WORKSPACES }, (_, n) => newOpening(`limit ${n}`)));
  for (let round = 0; round < 2; round++) {
    const statuses = await Promise.all(openings.map(({ open }) => open()));
    assert.deepEqual(
      statuses.toSorted(),
      Array.from({ length: WORKSPACES }, (_, n) => (n < LIMIT ? 202 : 503)),
    );
    const open = openings.filter((_, n) => statuses[n] === 202);
    assert.deepEqual(
      await Promise.all(open.map(({ close }) => close())),
      open.map(() => 200),
    );
  }
});

test('the limit of sessions of a workspace holds when its sessions are opened at once', async () => {
  const { id } = await server.client.workspaces.create({ name: 'one' });
  const openings = await Promise.all(
    Array.from({ length: WORKSPACES }, (_, n) => newOpening(`notebook ${n}`, id)),
  );
  for (let round = 0; round < 2; round++) {
    const statuses = await Promise.all(openings.map(({ open }) => open()));
    assert.deepEqual(
      statuses.toSorted(),
      Array.from({ length: WORKSPACES }, (_, n) => (n < WORKSPACE_LIMIT ? 202 : 429)),
    );
    await Promise.all(openings.filter((_, n) => statuses[n] === 202).map(({ close }) => close()));
  }
});
