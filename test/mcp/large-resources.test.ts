/** Large outputs as resources for clients of the protocol of 2025. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

/** Reads a resource as a client of this version of the protocol does. */
function read(uri: string, version: string): Promise<Response> {
  return fetch(`${server.baseUrl}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': version,
      authorization: `Bearer ${OWNER.token}`,
      'service-workspace-id': OWNER.workspaceId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'resources/read', params: { uri } }),
  });
}

for (const version of ['2025-03-26', '2025-06-18', '2025-11-25'])
  test(`by the protocol ${version}, an output of 2 MB is read as JSON, because clients refuse so large an event of a stream`, async () => {
    const notebook = await openNotebook(server, { page: 'import marimo as mo\nmo.Html("x" * 2_000_000)' });
    const { runId } = await server.client.executions.submit(notebook.id, { type: 'all' });
    const { output } = await server.client.waitForRun(runId);
    const asset = output?.parts.find((part) => part.type === 'asset');
    assert.ok(asset);
    const response = await read(`troupe://runs/${runId}/assets/${asset.assetId}`, version);
    assert.equal(response.headers.get('content-type'), 'application/json');
    const { id, result } = (await response.json()) as {
      readonly id: number;
      readonly result: { readonly contents: readonly { readonly blob: string }[] };
    };
    assert.equal(id, 7);
    const blobs = result.contents.map(({ blob }) => Buffer.from(blob, 'base64').toString());
    assert.deepEqual(blobs, ['x'.repeat(2_000_000)]);
    await notebook.close();
  });

test('by the protocol of 2025, a resource that is not there is an error', async () => {
  const response = await read('troupe://runs/run_none/assets/asset_none', '2025-06-18');
  const { error } = (await response.json()) as { readonly error: { readonly message: string } };
  assert.match(error.message, /^There is no resource troupe:\/\/runs\/run_none/);
});
