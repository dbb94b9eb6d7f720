import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { startTestHost, type TestHost } from './kernel-fixture.ts';

const SERIALIZATION = {
  version: '1',
  app: { options: { width: 'medium' } },
  cells: [
    { cell_id: 'one', code: 'x = 1', options: {} },
    { cell_id: 'two', code: 'print(x)\nx + 1', options: { hide_code: true, name: 'second' } },
  ],
  valid: true,
  ui_values: {},
};
const RESULTS = {
  two: {
    output: { channel: 'output', mimetype: 'text/html', data: '<b>RESULT</b>', timestamp: 1 },
    console: [{ channel: 'stdout', mimetype: 'text/plain', data: '1\n', timestamp: 1 }],
  },
} as const;

let host: TestHost;
before(async () => {
  host = await startTestHost();
});
after(() => host[Symbol.asyncDispose]());

async function write(format: 'py' | 'ipynb' | 'md' | 'html'): Promise<string> {
  const request = {
    direction: 'write',
    serialization: SERIALIZATION,
    results: RESULTS,
    assetUrl: '/front',
  } as const;
  const result = await host.host.convert({ ...request, format });
  assert.ok(result.ok && result.content !== null);
  return result.content;
}

for (const format of ['py', 'ipynb', 'md'] as const) {
  test(`a notebook comes back from .${format} with its cells, names and options`, async () => {
    const content = await write(format);
    const result = await host.host.convert({ direction: 'read', format, content });
    assert.ok(result.ok);
    const cells = result.serialization?.cells;
    assert.ok(Array.isArray(cells));
    assert.deepEqual(
      cells.map(({ code, options }) => ({ code, options })),
      SERIALIZATION.cells.map(({ code, options }) => ({ code, options })),
    );
  });
}

test('saved outputs are kept in .ipynb and .html, and the page loads its front end from this server only', async () => {
  assert.match(await write('ipynb'), /RESULT/);
  const page = await write('html');
  assert.match(page, /RESULT/);
  assert.match(page, /"\/front\//);
  assert.doesNotMatch(page, /cdn\.jsdelivr/);
});

for (const [format, content, where] of [
  ['py', 'x = 1\ny = = 2\n', /line 2, column 5/],
  ['ipynb', '{"cells": [', /line 1, column/],
  ['ipynb', '{"cells": 7}', /cells/],
  ['ipynb', '['.repeat(100_000), /nested too deeply/],
] as const) {
  test(`.${format} that begins with ${content.slice(0, 12).trim()} is unreadable, and the error names the place`, async () => {
    const result = await host.host.convert({ direction: 'read', format, content });
    assert.ok(!result.ok);
    assert.equal(result.error.code, 'unreadable_notebook');
    assert.match(result.error.message, where);
  });
}

test('conversions run in parallel and leave no socket', async () => {
  const requests = Array.from({ length: 8 }, (_, i) =>
    host.host.convert({ direction: 'read', format: 'py', content: `x = ${i}` }),
  );
  const codes = (await Promise.all(requests)).map(
    (result) => result.ok && JSON.stringify(result.serialization?.cells),
  );
  codes.forEach((cells, i) => {
    assert.match(String(cells), new RegExp(`"x = ${i}"`));
  });
  assert.deepEqual(readdirSync(host.runDir), []);
});

test('a conversion without a host fails with an error that says so', async () => {
  const lost = await startTestHost();
  await lost[Symbol.asyncDispose]();
  const result = await lost.host.convert({ direction: 'read', format: 'py', content: '' });
  const message = 'The kernel host is not running.';
  assert.deepEqual(result, { ok: false, error: { code: 'kernel_host_failed', message } });
});
