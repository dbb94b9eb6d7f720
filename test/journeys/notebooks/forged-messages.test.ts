/** Notebook code that writes messages of its own to the socket of its kernel, in a whole server. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { FORGE } from '#test/support/forged-frames.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

const CHANGES: Readonly<Record<string, string>> = {
  'another code': `forge(frame(dict(op="notebook-document-transaction", transaction=dict(source="code-mode",
    changes=[dict(type="set-code", cellId="a", code="changed = 1")]))))`,
  'other options of the app':
    'forge(frame(dict(op="bridge-app-options", options=dict(app_title="Changed"))))',
  'a syntax error of a cell': `forge(frame(dict(op="bridge-done", seq=None, type="Forged", error=None, interrupted=False,
    cells=dict(a=["success", False, [dict(type="syntax", msg="changed")]]))))`,
};

for (const [what, code] of Object.entries(CHANGES))
  test(`a kernel that forges ${what} changes the saved notebook in edit mode and not in run mode`, async () => {
    for (const mode of ['edit', 'run'] as const) {
      const notebook = await openNotebook(server, { a: 'x = 1', forging: `${FORGE}\n${code}` }, { mode });
      assert.equal((await notebook.run(['forging'])).status, 'completed');
      const saved = await server.client.notebooks.get(notebook.id);
      assert.equal(saved.updatedAt === notebook.notebook.updatedAt, mode === 'run', mode);
      await notebook.close();
    }
  });
