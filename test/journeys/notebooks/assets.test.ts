import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import type { Run } from '#src/contract/wire/run.ts';
import { openNotebook, results } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

/** A value that notebook code shows under any type it likes. */
const SHOWN = `class Shown:
    def __init__(self, mimetype, data):
        self.pair = (mimetype, data)
    def _mime_(self):
        return self.pair`;
const TEXT = 'Ünicode '.repeat(10_000);
const BYTES = Buffer.from(TEXT);
const PIXELS = Buffer.alloc(60_000, 'not really a picture');
const SHA256 = createHash('sha256').update(BYTES).digest('hex');
const LARGE = 'z'.repeat(7_500_000);
const FORGED = 'text/html\\r\\nset-cookie: forged=1';

const notebook = await openNotebook(server, {
  shown: SHOWN,
  text: `Shown('text/plain', 'Ünicode ' * 10_000)`,
  image: `import base64
Shown('image/png', 'data:image/png;base64,' + base64.b64encode((b'not really a picture' * 3_000)).decode())`,
  page: `Shown('text/html', '<script>alert(1)</script>' * 4_000)`,
  drawing: `Shown('image/svg+xml', '<svg onload="alert(1)"/>' * 4_000)`,
  // The kernel refuses such a type; code in its process can send it nevertheless.
  forged: `from marimo._messaging.notification_utils import CellNotificationUtils as _Utils
_truncate = _Utils.maybe_truncate_output
def _forge(mimetype, data):
    _Utils.maybe_truncate_output = staticmethod(_truncate)
    return '${FORGED}', data
_Utils.maybe_truncate_output = staticmethod(_forge)
Shown('text/plain', 'x' * 70_000)`,
  parameters: `Shown('image/png; name="x"', 'x' * 70_000)`,
  large: `Shown('text/plain', 'z' * 7_500_000)`,
});
const run = await notebook.run({ type: 'all' });
const text = assetOf(run, 'text');

/** The path of a cell's only output. */
function assetOf(of: Run, cellId: string): string {
  const [output] = results(of).find((result) => result.cellId === cellId)?.outputs ?? [];
  assert.ok(output !== undefined && 'assetId' in output, `the output of ${cellId} is no asset`);
  return `/api/v3/runs/${of.id}/assets/${output.assetId}`;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly caller?: { readonly token: string; readonly workspaceId: string };
}

async function get(path: string, { method = 'GET', headers = {}, caller = server.owner }: Asked = {}) {
  const response = await fetch(server.baseUrl + path, {
    method,
    headers: {
      authorization: `Bearer ${caller.token}`,
      'service-workspace-id': caller.workspaceId,
      ...headers,
    },
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  return { status: response.status, headers: Object.fromEntries(response.headers), bytes };
}

/** Status, range and body. */
async function part(range: string, more: Readonly<Record<string, string>> = {}) {
  const { status, headers, bytes } = await get(text, { headers: { range, ...more } });
  return { status, range: headers['content-range'], bytes };
}

const SIZE = BYTES.length;
const WHOLE = { status: 200, range: undefined, bytes: BYTES };

test('an asset is served unchanged, with headers that prevent harm', async () => {
  const { status, headers, bytes } = await get(text);
  const { date, 'x-request-id': requestId, 'keep-alive': _, connection, uwebsockets, ...rest } = headers;
  assert.ok(requestId !== undefined);
  assert.deepEqual([status, bytes.equals(BYTES)], [200, true]);
  assert.deepEqual(rest, {
    'accept-ranges': 'bytes',
    'cache-control': 'private, no-cache',
    'content-disposition': 'inline',
    'content-length': String(SIZE),
    'content-security-policy': "sandbox; default-src 'none'",
    'content-type': 'text/plain; charset=utf-8',
    'cross-origin-resource-policy': 'same-origin',
    etag: `"${SHA256}"`,
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  });
});

test('the run names the asset with its size and hash', () => {
  const assetId = text.split('/').at(-1);
  const found = run.output?.parts.find((p) => p.type === 'asset' && p.assetId === assetId);
  assert.deepEqual(found, { type: 'asset', assetId, mimetype: 'text/plain', bytes: SIZE, sha256: SHA256 });
});

test('an image from a data URL is served as its bytes', async () => {
  const { headers, bytes } = await get(assetOf(run, 'image'));
  assert.deepEqual(
    [headers['content-type'], headers['content-disposition'], bytes.equals(PIXELS)],
    ['image/png', 'inline', true],
  );
});

for (const [cellId, contentType] of [
  ['page', 'text/html; charset=utf-8'],
  ['drawing', 'image/svg+xml'],
  ['forged', 'application/octet-stream'],
  ['parameters', 'application/octet-stream'],
] as const) {
  test(`an asset of the cell ${cellId} is never displayed inline`, async () => {
    const { status, headers } = await get(assetOf(run, cellId));
    assert.deepEqual(
      [status, headers['content-type'], headers['content-disposition'], headers['set-cookie']],
      [200, contentType, 'attachment', undefined],
    );
  });
}

const RANGES: readonly (readonly [range: string, first: number, last: number])[] = [
  ['bytes=0-0', 0, 0],
  ['bytes=0-9', 0, 9],
  [`bytes=${SIZE - 1}-`, SIZE - 1, SIZE - 1],
  [`bytes=0-${SIZE - 1}`, 0, SIZE - 1],
  [`bytes=100-${SIZE + 100}`, 100, SIZE - 1],
  ['bytes=-1', SIZE - 1, SIZE - 1],
  [`bytes=-${SIZE + 1}`, 0, SIZE - 1],
];

for (const [range, first, last] of RANGES) {
  test(`${range} of ${SIZE} bytes returns bytes ${first} to ${last}`, async () => {
    assert.deepEqual(await part(range), {
      status: 206,
      range: `bytes ${first}-${last}/${SIZE}`,
      bytes: BYTES.subarray(first, last + 1),
    });
  });
}

for (const range of [`bytes=${SIZE}-`, `bytes=${SIZE}-${SIZE + 5}`, 'bytes=-0']) {
  test(`${range} of ${SIZE} bytes is not satisfiable`, async () => {
    const { status, headers, body } = await server.request('GET', text, { headers: { range } });
    const { code, detail } = body as { code: string; detail: string };
    assert.deepEqual(
      [status, headers['content-range'], code, detail],
      [416, `bytes */${SIZE}`, 'range_not_satisfiable', `There are ${SIZE} bytes.`],
    );
  });
}

for (const range of ['bytes=0-1,5-6', 'bytes=9-1', 'bytes=', 'cells=1-2', 'nonsense']) {
  test(`${JSON.stringify(range)} returns the whole asset`, async () => {
    assert.deepEqual(await part(range), WHOLE);
  });
}

test('a range is used only if the tag in If-Range is current', async () => {
  const current = { status: 206, range: `bytes 0-3/${SIZE}`, bytes: BYTES.subarray(0, 4) };
  assert.deepEqual(await part('bytes=0-3', { 'if-range': `"${SHA256}"` }), current);
  assert.deepEqual(await part('bytes=0-3', { 'if-range': '"other"' }), WHOLE);
  assert.deepEqual(await part('bytes=0-3', { 'if-range': `W/"${SHA256}"` }), WHOLE);
  assert.deepEqual(await part('bytes=0-3', { 'if-range': 'Wed, 21 Oct 2015 07:28:00 GMT' }), WHOLE);
});

for (const tags of [`"${SHA256}"`, `W/"${SHA256}"`, `"other", "${SHA256}"`, '*']) {
  test(`If-None-Match: ${tags.replace(SHA256, '…')} returns 304 without the bytes`, async () => {
    const { status, headers, bytes } = await get(text, {
      headers: { 'if-none-match': tags, range: 'bytes=0-0' },
    });
    assert.deepEqual([status, headers.etag, bytes.length], [304, `"${SHA256}"`, 0]);
  });
}

test('a condition with an outdated tag returns the bytes', async () => {
  const { status, bytes } = await get(text, { headers: { 'if-none-match': `"other", ${SHA256}` } });
  assert.deepEqual([status, bytes.length], [200, SIZE]);
});

test('HEAD returns the headers of the whole asset for every range', async () => {
  const { status, headers, bytes } = await get(text, { method: 'HEAD', headers: { range: 'bytes=0-3' } });
  assert.deepEqual(
    [status, headers['content-length'], headers.etag, headers['content-range'], bytes.length],
    [200, String(SIZE), `"${SHA256}"`, undefined, 0],
  );
});

test('many clients at once receive megabytes intact, while other requests are served', async () => {
  const path = assetOf(run, 'large');
  const many = Promise.all(Array.from({ length: 8 }, () => get(path)));
  assert.equal((await get('/healthz')).status, 200);
  const expected = Buffer.from(LARGE);
  for (const { bytes, headers } of await many) {
    assert.deepEqual([bytes.equals(expected), headers['content-length']], [true, String(expected.length)]);
  }
  const last = await get(path, { headers: { range: 'bytes=-3' } });
  assert.deepEqual(
    [last.status, last.headers['content-range'], last.bytes.toString()],
    [206, 'bytes 7499997-7499999/7500000', 'zzz'],
  );
});

test('a missing asset and an asset of another workspace get the same 404', async () => {
  const stranger = await server.stranger();
  const bodies = [];
  for (const [path, caller] of [
    [text, stranger],
    [`/api/v3/runs/${run.id}/assets/asset_nothing`, server.owner],
    [`/api/v3/runs/run_nothing/assets/${text.split('/').at(-1)}`, server.owner],
  ] as const) {
    const { status, bytes } = await get(path, { caller });
    const { instance, requestId, ...rest } = JSON.parse(bytes.toString()) as Record<string, unknown>;
    assert.ok(instance === path && requestId !== undefined);
    bodies.push({ status, rest });
  }
  assert.equal(bodies[0]?.status, 404);
  assert.deepEqual(bodies, [bodies[0], bodies[0], bodies[0]]);
});

test('assets remain after their session, and the client reads them by their ids', async () => {
  await notebook.close();
  const { contentType, bytes } = await server.client.runs.asset(run.id, text.split('/').at(-1) ?? '');
  assert.deepEqual([contentType, Buffer.from(bytes).equals(BYTES)], ['text/plain; charset=utf-8', true]);
});
