/** Large outputs as resources for clients of the protocol of 2025. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

/** Reads a resource as a client of this version of the protocol does. */
function read(uri: string, version: string | undefined): Promise<Response> {
  return fetch(`${server.baseUrl}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(version === undefined ? {} : { 'mcp-protocol-version': version }),
      authorization: `Bearer ${OWNER.token}`,
      'service-workspace-id': OWNER.workspaceId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'resources/read', params: { uri } }),
  });
}

for (const version of ['2025-03-26', '2025-06-18', '2025-11-25'])
  test(`by the protocol ${version}, an output of 2 MB is sent as JSON, because clients refuse so large an event of a stream`, async () => {
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

for (const version of ['2025-06-18', undefined])
  test(`the JSON of a large resource is made in slices (protocol ${version ?? 'of no version'})`, async (t) => {
    const code = '# a "line" \\ ä 😀\n'.repeat(200_000);
    const { id } = await server.client.notebooks.create({
      serialization: { cells: [{ cell_id: 'a', code }] },
    });
    let longest = 0;
    const stringify = JSON.stringify;
    t.mock.method(JSON, 'stringify', (...args: Parameters<typeof JSON.stringify>) => {
      const json = stringify(...args);
      longest = Math.max(longest, json?.length ?? 0);
      return json;
    });
    const text = await (await read(`troupe://notebooks/${id}`, version)).text();
    t.mock.restoreAll();
    assert.ok(longest < 300_000, `${longest} characters were encoded at once`);
    const { result } = JSON.parse(text.slice(text.indexOf('{'), text.lastIndexOf('}') + 1)) as {
      readonly result: { readonly contents: readonly { readonly text: string }[] };
    };
    assert.equal(result.contents[0]?.text.split('# a "line" \\ ä 😀\n').length, 200_001);
  });

test('the address of a resource has a maximum length, and an answer does not repeat a longer address', async () => {
  const response = await read(`troupe://notebooks/${'x'.repeat(3_000_000)}`, '2025-06-18');
  const text = await response.text();
  assert.match(text, /There is no resource with so long an address/);
  assert.ok(text.length < 1000);
});

test('by the protocol of 2025, reading a missing resource is an error', async () => {
  const response = await read('troupe://runs/run_none/assets/asset_none', '2025-06-18');
  const { error } = (await response.json()) as { readonly error: { readonly message: string } };
  assert.match(error.message, /^There is no resource troupe:\/\/runs\/run_none/);
});
