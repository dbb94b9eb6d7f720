// tier: whole, because it paces readers for a long time
// runs alone: it paces readers, which other work delays
import assert from 'node:assert/strict';
import { get } from 'node:http';
import { test } from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const LINES = 14_000;
/** Prints 10 MB a second, in lines of 1,000 bytes: more than the buffers of a connection hold, which are some 8 MB. */
const CODE = `import time
began = time.monotonic()
for n in range(${LINES}):
    print(f"{n:06}" + "y" * 993)
    ahead = began + n / 10_000 - time.monotonic()
    if ahead > 0.005: time.sleep(ahead)
print("the " + "end")`;

test('a cell that prints 10 MB a second is slowed down to a reader of 3 MB a second, and the reader gets all text', async (t) => {
  const server = await startChildServer(t);
  const notebook = await openNotebook(server, { a: CODE });
  const path = `/api/v3/notebook-sessions/${notebook.id}/events`;
  const reader = await readSlowly(server.baseUrl, path, 3e6);
  const run = await notebook.run(['a']);
  assert.equal(run.status, 'completed');
  const text = await reader.text;
  const cutOff = /resync-required[^\n]*/.exec(text);
  assert.equal(cutOff, null);
  const lines = text.match(/\d{6}y{993}/g) ?? [];
  assert.deepEqual([lines.length, lines.findIndex((line, n) => Number(line.slice(0, 6)) !== n)], [LINES, -1]);
});

/**
 * Opens a stream and reads it at this speed. Resolves when it is open. `text` resolves with
 * everything that was read until the cell has ended or the server has cut the reader off.
 */
function readSlowly(
  baseUrl: string,
  path: string,
  bytesPerSecond: number,
): Promise<{ readonly text: Promise<string> }> {
  const headers = { authorization: `Bearer ${OWNER.token}`, 'service-workspace-id': OWNER.workspaceId };
  return new Promise((resolve, reject) => {
    const asked = get(baseUrl + path, { headers, agent: false }, (incoming) => {
      const chunks: string[] = [];
      const beganAtMs = performance.now();
      let bytes = 0;
      const text = new Promise<string>((end) => incoming.once('close', () => end(chunks.join(''))));
      resolve({ text });
      incoming.on('error', () => {}); // the received text
      incoming.setEncoding('latin1').on('data', (chunk: string) => {
        chunks.push(chunk);
        bytes += chunk.length;
        if (/the end|resync-required/.test(chunks.slice(-2).join(''))) incoming.destroy();
        const aheadMs = (bytes / bytesPerSecond) * 1000 - (performance.now() - beganAtMs);
        if (aheadMs < 1) return;
        incoming.pause();
        setTimeout(() => incoming.resume(), aheadMs);
      });
    });
    asked.once('error', reject);
  });
}
