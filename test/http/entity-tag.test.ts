import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import test from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import { READ_CONDITION, WRITE_CONDITIONS } from '#src/contract/wire/operations/parts.ts';
import { contentTag, isKnown, requireState, unlessKnown, versionTag } from '#src/http/reply/entity-tag.ts';
import { noContent, ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { GOOD, send, serve } from './test-server.ts';

const CURRENT = versionTag('v,2');

/**
 * The header, and whether it names the current tag by weak and by strong comparison. `invalid`
 * means that it is not a list of tags.
 */
const HEADERS: readonly (readonly [header: string, weakly: boolean, strongly: boolean | 'invalid'])[] = [
  ['"v,2"', true, true],
  ['*', true, true],
  [' * ', true, true],
  ['W/"v,2"', true, false],
  ['"v,1"', false, false],
  ['"v,1", "v,2"', true, true],
  ['"v,1","v,2"', true, true],
  ['"v,1" ,\t"v,2" ,', true, true],
  [', "v,2"', true, true],
  ['W/"v,1", W/"v,2"', true, false],
  ['W/"v,2", "v,2"', true, true],
  ['"v,2-gzip"', true, true],
  ['"v,1-gzip"', false, false],
  ['W/"v,2-gzip"', true, false],
  ['"v,2-br"', false, false],
  ['"V,2"', false, false],
  ['""', false, false],
  ['"2"', false, false],
  ['v,2', false, 'invalid'],
  ['w/"v,2"', false, 'invalid'],
  ['W/ "v,2"', false, 'invalid'],
  ['"v,2', false, 'invalid'],
  ['"v,1" "v,2"', false, 'invalid'],
  ['"v,2", *', false, 'invalid'],
  ['"v 2"', false, 'invalid'],
];

function outcome(headers: Record<keyof typeof WRITE_CONDITIONS, string>): string {
  try {
    requireState(headers, () => CURRENT);
    return 'goes ahead';
  } catch (error) {
    assert.ok(error instanceof AppError);
    return error.code;
  }
}

for (const [header, weakly, strongly] of HEADERS) {
  test(`If-None-Match: ${header} ${weakly ? 'names' : 'does not name'} the tag ${CURRENT}`, () => {
    assert.equal(isKnown(header, CURRENT), weakly);
    const refused =
      strongly === 'invalid' ? 'invalid_request' : weakly ? 'precondition_failed' : 'goes ahead';
    assert.equal(outcome({ 'if-match': '', 'if-none-match': header }), refused);
  });

  test(`a write with If-Match: ${header} ${strongly === true ? 'goes ahead' : 'is refused'}`, () => {
    const expected =
      strongly === 'invalid' ? 'invalid_request' : strongly ? 'goes ahead' : 'precondition_failed';
    assert.equal(outcome({ 'if-match': header, 'if-none-match': '' }), expected);
  });
}

test('a write without conditions does not compute a tag', () => {
  requireState({ 'if-match': '', 'if-none-match': '' }, () => assert.fail('computed'));
});

/** With a cost of the square of its length, a header of this length would take hours. */
const LONG = 4_000_000;

for (const [what, header] of Object.entries({
  'blanks after a comma': `"v,1",${' '.repeat(LONG)}x`,
  'tabs after a tag': `"v,1"${'\t'.repeat(LONG)}x`,
  'blanks alone': `${' '.repeat(LONG)}x`,
  'empty elements': `${','.repeat(LONG)}x`,
  'a tag that does not end': `"${'a'.repeat(LONG)}`,
  'weak marks': `${'W/'.repeat(LONG)}x`,
}))
  test(`a header with ${what} takes time in proportion to its length`, () => {
    assert.equal(isKnown(header, CURRENT), false);
    assert.equal(outcome({ 'if-match': header, 'if-none-match': '' }), 'invalid_request');
  });

test('different content has different tags', () => {
  assert.equal(contentTag('a'), contentTag(Buffer.from('a')));
  assert.notEqual(contentTag('a'), contentTag('b'));
  assert.match(contentTag('a'), /^"[\w-]{43}"$/);
});

test('tags in several header lines are one list, for reads and for writes', async (t) => {
  const things = [
    defineRoute({
      method: 'GET',
      path: '/things',
      operationId: 'read',
      summary: 's',
      tags: [],
      access: { action: 'thing.use' },
      headers: READ_CONDITION,
      responses: { 200: { description: 'd' }, 304: { description: 'd' } },
      handle: ({ headers }) => unlessKnown(ok({}), CURRENT, headers),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/things',
      operationId: 'write',
      summary: 's',
      tags: [],
      access: { action: 'thing.use' },
      headers: WRITE_CONDITIONS,
      responses: { 204: { description: 'd' } },
      handle({ headers }) {
        requireState(headers, () => CURRENT);
        return noContent();
      },
    }),
  ];
  const server = await serve(t, things);
  /** Sends one header line for each tag. Returns the head of the answer. */
  const head = async (method: string, name: string, tags: readonly string[]) => {
    const socket = connect(server.port, server.host);
    t.after(() => socket.destroy());
    const lines = [
      `${method} /things HTTP/1.1`,
      'host: x',
      ...Object.entries(GOOD).map(([header, value]) => `${header}: ${value}`),
      ...tags.map((tag) => `${name}: ${tag}`),
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    const [bytes] = await once(socket, 'data');
    return String(bytes).split('\r\n');
  };
  const unchanged = await head('GET', 'If-None-Match', ['"v,1"', '"v,2"']);
  assert.equal(unchanged[0], 'HTTP/1.1 304 Not Modified');
  assert.ok(unchanged.includes(`etag: ${CURRENT}`));
  assert.equal((await head('GET', 'If-None-Match', ['"v,1"', '"v,0"']))[0], 'HTTP/1.1 200 OK');
  assert.equal((await head('DELETE', 'If-Match', ['"v,1"', '"v,2"']))[0], 'HTTP/1.1 204 No Content');
  const refused = await head('DELETE', 'If-Match', ['"v,1"', '"v,0"']);
  assert.equal(refused[0], 'HTTP/1.1 412 Precondition Failed');
  assert.ok(refused.includes(`etag: ${CURRENT}`));
  const { status, headers, text } = await send(server, '/things', { method: 'HEAD' });
  assert.deepEqual([status, headers.etag, text], [200, CURRENT, '']);
});
