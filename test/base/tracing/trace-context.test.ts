import assert from 'node:assert/strict';
import test from 'node:test';
import { childOf, parseTraceparent, traceparentOf } from '#src/base/tracing/trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

test('a well-formed traceparent is read, and passed on with the same trace id and flag', () => {
  const context = parseTraceparent(`00-${TRACE}-${SPAN}-01`);
  assert.deepEqual(context, { traceId: TRACE, spanId: SPAN, isSampled: true });
  assert.equal(parseTraceparent(`00-${TRACE}-${SPAN}-00`)?.isSampled, false);
  assert.equal(parseTraceparent(`00-${TRACE}-${SPAN}-03`)?.isSampled, true, 'unknown flags are passed over');
  const child = childOf(context);
  assert.match(traceparentOf(child), new RegExp(`^00-${TRACE}-[0-9a-f]{16}-01$`));
  assert.notEqual(child.spanId, SPAN);
});

test('a traceparent of a later version may have more fields, and a traceparent of version 00 may not', () => {
  assert.equal(parseTraceparent(`cc-${TRACE}-${SPAN}-01-what-is-new`)?.traceId, TRACE);
  assert.equal(parseTraceparent(`cc-${TRACE}-${SPAN}-01`)?.traceId, TRACE);
  assert.equal(parseTraceparent(`00-${TRACE}-${SPAN}-01-more`), undefined);
});

for (const [what, text] of [
  ['nothing', ''],
  ['version ff', `ff-${TRACE}-${SPAN}-01`],
  ['no trace', `00-${'0'.repeat(32)}-${SPAN}-01`],
  ['no span', `00-${TRACE}-${'0'.repeat(16)}-01`],
  ['capital letters', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
  ['a short trace', `00-${TRACE.slice(1)}-${SPAN}-01`],
  ['a long span', `00-${TRACE}-${SPAN}0-01`],
  ['one digit of flags', `00-${TRACE}-${SPAN}-1`],
  ['other characters', `00-${TRACE.slice(1)}g-${SPAN}-01`],
  ['a later version whose fields run on', `cc-${TRACE}-${SPAN}-01.what`],
  ['two headers in one', `00-${TRACE}-${SPAN}-01,00-${TRACE}-${SPAN}-01`],
] as const) {
  test(`a traceparent with ${what} is ignored`, () => assert.equal(parseTraceparent(text), undefined));
}
