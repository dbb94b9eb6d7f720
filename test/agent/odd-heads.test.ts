import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import test, { type TestContext } from 'node:test';
import { askModel } from '#src/agent/models/model-call.ts';
import { questionTo } from '#test/support/stand-ins/model-vendor.ts';

const EVENTS =
  'data: {"id":"1","choices":[{"index":0,"delta":{"content":"Yes."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

/** Sends a prompt to a model server whose answer has this head. Returns the text of the model, or the code of the failure. */
async function asked(t: TestContext, head: string, body: string): Promise<unknown> {
  const server = createServer((socket) => {
    socket.on('error', () => {}); // the client may go first
    const length = `content-length: ${body.length}`;
    socket.once('data', () =>
      socket.write(Buffer.from(`HTTP/1.1 ${head}\r\n${length}\r\n\r\n${body}`, 'latin1')),
    );
    t.after(() => socket.destroy());
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return await askModel(questionTo(url)).then(
    ({ parts }) => parts,
    ({ failure }) => failure.code,
  );
}

test('an answer with any bytes in its header values is read', async (t) => {
  const region = {
    'latin-1': 'Z\xfcrich',
    'UTF-8': Buffer.from('東京').toString('latin1'),
  };
  for (const [kind, value] of Object.entries(region)) {
    const head = `200 OK\r\nx-region: ${value}\r\ncontent-type: text/event-stream`;
    assert.deepEqual(await asked(t, head, EVENTS), [{ type: 'text', text: 'Yes.' }], kind);
  }
});

test('a status outside of HTTP counts as a failure of the provider', async (t) => {
  assert.equal(await asked(t, '599 No\r\ncontent-type: text/plain', 'no'), 'model_overloaded');
  assert.equal(await asked(t, '600 No\r\ncontent-type: text/plain', 'no'), 'model_overloaded');
  assert.equal(await asked(t, '999 No', ''), 'model_overloaded');
});
