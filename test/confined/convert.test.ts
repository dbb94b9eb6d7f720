import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { convertInChild } from '#src/confined/processes/children/convert.ts';
import { EngineProcess } from '#src/confined/processes/children/engine-process.ts';
import { checkSyntaxInChild } from '#src/confined/processes/children/syntax-judge.ts';
import type { ChildStarter, ConfinedChild } from '#src/confined/processes/confined-child.ts';
import { NO_PROCESS_LIMITS } from '#src/confined/processes/limits.ts';
import { startTestHost, type TestHost } from './kernel-fixture.ts';

/** The folder of the files of the workspace that conversions count towards. */
const FILES = '/workspace/files';
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
  const result = await host.host.convert({ ...request, format }, FILES);
  assert.ok(result.ok && result.content !== null);
  return result.content;
}

for (const format of ['py', 'ipynb', 'md'] as const) {
  test(`a notebook converted to .${format} and back keeps its cells, names and options`, async () => {
    const content = await write(format);
    const result = await host.host.convert({ direction: 'read', format, content }, FILES);
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
    const result = await host.host.convert({ direction: 'read', format, content }, FILES);
    assert.ok(!result.ok);
    assert.equal(result.error.code, 'unreadable_notebook');
    assert.match(result.error.message, where);
  });
}

test('conversions run in parallel and leave no socket', async () => {
  const requests = Array.from({ length: 8 }, (_, i) =>
    host.host.convert({ direction: 'read', format: 'py', content: `x = ${i}` }, FILES),
  );
  const codes = (await Promise.all(requests)).map(
    (result) => result.ok && JSON.stringify(result.serialization?.cells),
  );
  codes.forEach((cells, i) => {
    assert.match(String(cells), new RegExp(`"x = ${i}"`));
  });
  assert.deepEqual(readdirSync(host.runDir), []);
});

test('a conversion without a host fails with a clear error', async () => {
  const lost = await startTestHost();
  await lost[Symbol.asyncDispose]();
  const result = await lost.host.convert({ direction: 'read', format: 'py', content: '' }, FILES);
  const message = 'The kernel host is not running.';
  assert.deepEqual(result, { ok: false, error: { code: 'kernel_host_failed', message } });
});

test('conversions and checks of long code count towards the memory of their workspace, together with its databases', async () => {
  const limits = { ...NO_PROCESS_LIMITS, memoryBytes: 500 * 2 ** 20, nice: 7 };
  const orders: Readonly<Record<string, unknown>>[] = [];
  const starter: ChildStarter = {
    startChild(request, events) {
      orders.push(request(null).order);
      queueMicrotask(() => events.ended({ kind: 'lost' }));
      return { [Symbol.dispose]: () => undefined } as ConfinedChild;
    },
    newSocketPath: () => '/nowhere',
  };
  const request = { direction: 'read', format: 'py', content: '' } as const;
  await convertInChild(request, '/a/files', limits, starter);
  await checkSyntaxInChild(['x'], '/a/files', limits, starter);
  using _ = new EngineProcess(
    { kind: 'sqlite', filesDirectory: '/a/files', path: 'x', mode: 'read' },
    limits,
    starter,
  );
  await convertInChild(request, '/b/files', limits, starter);
  const [first, ...others] = orders.map(({ share, memory, nice }) => ({ share, memory, nice }));
  assert.deepEqual(others.slice(0, 2), [first, first]);
  assert.deepEqual({ ...first, share: null }, { share: null, memory: 500 * 2 ** 20, nice: 7 });
  assert.notEqual(others[2]?.share, first?.share);
});
