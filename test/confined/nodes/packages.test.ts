// tier: whole, because it starts several nodes
/** Packages of notebooks whose kernels run on nodes. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { joinNode, startServerOfNodes } from '#test/support/kernel-node.ts';
import { OpenNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { descendants } from '#test/support/processes.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';

const index = await startPackageIndex(test, [
  { name: 'greeting', version: '1.0', code: 'text = "hello"' },
  // pandas and matplotlib, which are loaded ahead, bring another version
  { name: 'cycler', version: '99.0', code: 'version = "another"' },
]);

test('kernels with packages run on nodes, also when a package replaces a library that is loaded ahead', async (t) => {
  const server = await startServerOfNodes(t, {
    TROUPE_PACKAGES: 'true',
    TROUPE_PACKAGE_INDEX: index.url,
    TROUPE_PRELOAD: 'true',
  });
  const node = await joinNode(t, server, 'one', { TROUPE_PRELOAD: 'true' });
  const { client } = server;
  for (const [dependency, code, expected] of [
    ['greeting', 'import greeting\n    print(greeting.text)', 'hello\n'],
    ['cycler==99', 'import cycler\n    print(cycler.version)', 'another\n'],
  ] as const) {
    const content = `# /// script\n# dependencies = ["${dependency}"]\n# ///\nimport marimo\n\napp = marimo.App()\n\n@app.cell\ndef _():\n    ${code}\n    return\n`;
    const notebook = await client.notebooks.import({ format: 'py', content });
    const { environmentId } = await client.executionEnvironments.create();
    await client.notebookSessions.open({ notebookId: notebook.id, environmentId });
    const session = await client.notebookSessions.waitUntilReady(notebook.id);
    const opened = new OpenNotebook(client, notebook, environmentId, session);
    const ran = await opened.run([]);
    assert.equal(ran.status, 'completed', JSON.stringify(ran));
    assert.equal(printed(results(ran)[0]!), expected);
    const [kernel] = (await client.kernels({ sessionId: notebook.id })).items;
    assert.equal(kernel?.node, 'one');
    assert(descendants(node.pid).some(({ pid }) => pid === kernel.pid));
    await opened.close();
  }
});
