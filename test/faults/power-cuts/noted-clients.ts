/** Clients that use a server and note its acknowledgements in the log, and the records that a store must have after such notes. */
import { isDeepStrictEqual } from 'node:util';
import type { Client } from '#src/contract/client/client.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { actorSnapshots } from '#storage/records/actor-snapshots.ts';
import { notebookRecords, notebookSummaries } from '#storage/records/notebooks.ts';
import { runIndex, runRecords } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { LogNotes } from '#test/support/store/write-log.ts';

type Note =
  | { readonly of: 'notebook'; readonly id: string; readonly code: string }
  | { readonly of: 'environment'; readonly id: string }
  | { readonly of: 'run'; readonly id: string }
  | { readonly of: 'end'; readonly run: Run };

/** The changes that clients had begun before a moment, and those that the server had acknowledged. */
export class Acknowledged {
  /** The possible codes of each notebook: the acknowledged one, and the one that is being saved. */
  readonly notebooks = new Map<string, Set<string>>();
  readonly environments = new Set<string>();
  /** Runs with their final records, once those were read. */
  readonly runs = new Map<string, Run | undefined>();

  begun(text: string): void {
    const note: Note = JSON.parse(text);
    if (note.of === 'notebook') this.notebooks.get(note.id)?.add(note.code);
  }

  acknowledged(text: string): void {
    const note: Note = JSON.parse(text);
    if (note.of === 'notebook') this.notebooks.set(note.id, new Set([note.code]));
    else if (note.of === 'environment') this.environments.add(note.id);
    else if (note.of === 'run') this.runs.set(note.id, undefined);
    else this.runs.set(note.run.id, note.run);
  }

  /** Returns the records that a store lacks; undefined when it has everything. */
  problemOf(store: Store, workspaceId: string): string | undefined {
    for (const [id, codes] of this.notebooks) {
      const record = store.get(notebookRecords, workspaceId, id);
      if (record === undefined || store.get(notebookSummaries, workspaceId, id) === undefined)
        return `notebook ${id} is missing`;
      if (!codes.has(codeOf(JSON.parse(String(Buffer.from(record.document))))))
        return `notebook ${id} is not as it was saved`;
    }
    for (const id of this.environments)
      if (store.get(actorSnapshots, workspaceId, 'environment', id) === undefined)
        return `environment ${id} is missing`;
    for (const [id, run] of this.runs) {
      const record = store.get(runRecords, workspaceId, id);
      if (record === undefined || store.get(runIndex, workspaceId, id) === undefined)
        return `run ${id} is missing`;
      if (run !== undefined && !isDeepStrictEqual(JSON.parse(String(Buffer.from(record.document))), run))
        return `run ${id} is not as it ended`;
    }
    return undefined;
  }

  /** Asks a server for everything. Returns the things that it lacks; undefined when it has everything. */
  async problemAt({ notebooks, runs, executionEnvironments }: Client): Promise<string | undefined> {
    for (const [id, codes] of this.notebooks)
      if (!codes.has(codeOf(await notebooks.get(id)))) return `notebook ${id} is not as it was saved`;
    for (const id of this.environments) await executionEnvironments.get(id);
    for (const [id, run] of this.runs) {
      const found = await runs.get(id);
      if (run !== undefined && !isDeepStrictEqual(found, run)) return `run ${id} is not as it ended`;
    }
    return undefined;
  }
}

function codeOf({
  serialization,
}: {
  readonly serialization: { readonly cells: readonly { readonly code: string }[] };
}): string {
  return serialization.cells[0]?.code ?? '';
}

const serializationOf = (code: string) => ({ cells: [{ cell_id: 'a', code }] });

/** Creates notebooks and environments and saves notebooks, `steps` times. */
export async function saveNotebooks(client: Client, notes: LogNotes, steps: number): Promise<void> {
  const note = (value: Note) => notes.acknowledged(JSON.stringify(value));
  let id = '';
  let expectedUpdatedAt = '';
  for (let step = 0; step < steps; step++) {
    // A large code has pages of its own.
    const code = `# ${step}`.padEnd(step % 5 === 4 ? 20_000 : 100, '.');
    if (step % 4 === 0) {
      ({ id, updatedAt: expectedUpdatedAt } = await client.notebooks.create({
        serialization: serializationOf(code),
      }));
    } else {
      notes.begun(JSON.stringify({ of: 'notebook', id, code } satisfies Note));
      const changed = { expectedUpdatedAt, serialization: serializationOf(code) };
      ({ updatedAt: expectedUpdatedAt } = await client.notebooks.update(id, changed));
    }
    note({ of: 'notebook', id, code });
    if (step % 3 === 0)
      note({ of: 'environment', id: (await client.executionEnvironments.create()).environmentId });
  }
}

/** Runs the cell of a notebook, `steps` times. */
export async function runCells(client: Client, notes: LogNotes, steps: number): Promise<void> {
  const note = (value: Note) => notes.acknowledged(JSON.stringify(value));
  const { id: notebookId } = await client.notebooks.create({
    serialization: serializationOf('print(1 + 1)'),
  });
  const { environmentId } = await client.executionEnvironments.create();
  note({ of: 'environment', id: environmentId });
  await client.notebookSessions.open({ notebookId, environmentId });
  await client.notebookSessions.waitUntilReady(notebookId);
  for (let step = 0; step < steps; step++) {
    const { runId } = await client.executions.submit(notebookId, { type: 'cells', cells: [{ cellId: 'a' }] });
    note({ of: 'run', id: runId });
    note({ of: 'end', run: await client.waitForRun(runId) });
  }
}
