/** Our server, used through its public interface: a notebook is imported, opened, and run from top to bottom. */
import { readFileSync } from 'node:fs';
import type { Output } from '#src/contract/wire/output.ts';
import { results } from '#test/support/notebook-fixture.ts';
import type { TestServer } from '#test/support/server-fixture.ts';
import type { CorpusNotebook } from './corpus.ts';
import type { Runner } from './marimo-runner.ts';
import { comparable, type Shown } from './shown-cell.ts';

/** Outputs that our server adds to marimo's: that `mo.stop()` has ended a cell, and why one did not run. */
const STATUS_IN_MARIMO: Readonly<Record<string, string>> = { stopped: 'success', disabled: 'not run' };

/** Returns a function that runs notebooks on this server. */
export function troupeRunner({ client, filesDir }: TestServer): Runner {
  const withBytes = async (runId: string, shown: Output): Promise<Shown> => {
    const { mimetype, assetId, data } = shown;
    if (assetId === undefined) return { mimetype, data };
    const { bytes } = await client.runs.asset(runId, assetId);
    const isPicture = /^(image|audio|video)\/(?!svg)/.test(mimetype);
    const text = Buffer.from(bytes);
    return {
      mimetype,
      data: isPicture ? `data:${mimetype};base64,${text.toString('base64')}` : text.toString(),
    };
  };
  const run = async ({ path, format }: CorpusNotebook) => {
    const content = readFileSync(path, 'utf8');
    const [notebook, { environmentId }] = await Promise.all([
      client.notebooks.import({ format, content, title: 'notebook' }),
      client.executionEnvironments.create(),
    ]);
    await client.notebookSessions.open({ notebookId: notebook.id, environmentId });
    await client.notebookSessions.waitUntilReady(notebook.id);
    const { runId } = await client.executions.submit(notebook.id, { type: 'all', structuralErrors: 'skip' });
    const ran = await client.waitForRun(runId);
    const byId = new Map(results(ran).map((result) => [result.cellId, result]));
    const cells = await Promise.all(
      notebook.serialization.cells.map(async ({ cell_id: id, code }) => {
        const result = byId.get(id);
        const outputs = await Promise.all((result?.outputs ?? []).map((shown) => withBytes(runId, shown)));
        const console = await Promise.all(
          (result?.console ?? []).map(async (entry) => ({
            channel: entry.channel ?? '',
            ...(await withBytes(runId, entry)),
          })),
        );
        const status = STATUS_IN_MARIMO[result?.status ?? 'disabled'] ?? result?.status ?? '';
        return comparable({ id, code, status, outputs, console }, filesDir);
      }),
    );
    await client.notebookSessions.close(notebook.id);
    return cells;
  };
  return run;
}
