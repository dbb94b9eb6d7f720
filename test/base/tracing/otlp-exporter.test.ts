import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { OtlpExporter } from '#src/base/tracing/otlp-exporter.ts';
import { Tracer } from '#src/base/tracing/tracer.ts';
import { startOtlpReceiver } from '#test/support/stand-ins/otlp-receiver.ts';

const PARENT = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', isSampled: true };

test('spans arrive as OTLP, and closing the exporter sends the last spans', async (t) => {
  const receiver = await startOtlpReceiver(t);
  const exporter = new OtlpExporter({
    url: `${receiver.url}/`,
    version: '1',
    onDrop: () => {},
    onChange: () => {},
  });
  const tracer = new Tracer(exporter, 1);
  tracer.start('asked', { kind: 'client', parent: PARENT })?.end({
    attributes: { text: 'a', whole: 2, part: 0.5, flag: true },
    error: 'too_much',
  });
  tracer.start('begun')?.end();
  tracer.start('not recorded', { parent: { ...PARENT, isSampled: false } })?.end();
  await exporter[Symbol.asyncDispose]();
  assert.deepEqual(receiver.complaints, []);
  const [asked, begun, ...others] = receiver.spans;
  assert.deepEqual(others, []);
  assert.deepEqual([asked?.traceId, asked?.parentSpanId, asked?.kind], [PARENT.traceId, PARENT.spanId, 3]);
  assert.equal(asked?.status.code, 2);
  assert.deepEqual(
    asked?.attributes.map(({ key, value }) => [key, value]),
    [
      ['text', { stringValue: 'a' }],
      ['whole', { intValue: '2' }],
      ['part', { doubleValue: 0.5 }],
      ['flag', { boolValue: true }],
      ['error.type', { stringValue: 'too_much' }],
    ],
  );
  assert.equal(begun?.parentSpanId, undefined);
  assert.ok(BigInt(asked?.endTimeUnixNano ?? 0) >= BigInt(asked?.startTimeUnixNano ?? 1));
});

test('a full queue discards and counts spans, and never grows', async () => {
  const dropped: string[] = [];
  let bodies = 0;
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const exporter = new OtlpExporter({
    url: 'http://127.0.0.1:9',
    version: '1',
    onDrop: (count, reason) => void dropped.push(...Array.from({ length: count }, () => reason)),
    onChange: () => {},
    send: async () => {
      bodies++;
      await held;
      return new Response('{}');
    },
  });
  const tracer = new Tracer(exporter, 1);
  for (let count = 0; count < 512 + 2_048; count++) tracer.start('span')?.end();
  assert.deepEqual([dropped.length, bodies], [0, 1]);
  tracer.start('one more')?.end();
  assert.deepEqual(dropped, ['queue_full']);
  release();
  await exporter[Symbol.asyncDispose]();
});

test('when the receiver refuses or is gone, only spans are lost, and the lost spans are counted', async (t) => {
  const receiver = await startOtlpReceiver(t);
  receiver.status = 503;
  const dropped: unknown[] = [];
  const changes: boolean[] = [];
  const options = {
    version: '1',
    onDrop: (count: number, reason: string) => void dropped.push([count, reason]),
    onChange: (isWorking: boolean) => void changes.push(isWorking),
  };
  for (const url of [receiver.url, 'http://127.0.0.1:9']) {
    const exporter = new OtlpExporter({ ...options, url });
    new Tracer(exporter, 1).start('lost')?.end();
    await exporter[Symbol.asyncDispose]();
  }
  assert.deepEqual(dropped, [
    [1, 'refused'],
    [1, 'refused'],
  ]);
  assert.deepEqual(changes, [false, false]);
});

test('a receiver that never replies delays the end of a server only briefly', async (t) => {
  const hanging = createServer(() => {}).listen(0, '127.0.0.1');
  await once(hanging, 'listening');
  t.after(() => hanging.close().closeAllConnections());
  const { port } = hanging.address() as AddressInfo;
  let dropped = 0;
  const signals: AbortSignal[] = [];
  const exporter = new OtlpExporter({
    url: `http://127.0.0.1:${port}`,
    version: '1',
    send: (url, init) => {
      signals.push(init!.signal!);
      return fetch(url, init);
    },
    onDrop(count) {
      dropped += count;
    },
    onChange: () => {},
  });
  const tracer = new Tracer(exporter, 1);
  const asked = once(hanging, 'request');
  for (let count = 0; count < 512; count++) tracer.start('span')?.end();
  await asked; // a whole batch is under way
  tracer.start('one more')?.end();
  await exporter[Symbol.asyncDispose]();
  // A batch alone may take five seconds, and would end with a TimeoutError.
  const reasons = signals.map(({ reason }) => (reason as DOMException).name);
  assert.deepEqual(reasons, ['AbortError', 'AbortError'], 'the exporter itself has given up');
  assert.equal(dropped, 513);
});

test('without a trace from the client the sampling share decides whether a trace begins, and with a share of zero no trace begins', () => {
  const tracer = new Tracer({ add: () => assert.fail('nothing is recorded') }, 0);
  assert.equal(tracer.start('root'), undefined);
  const passed = tracer.start('child', { parent: { ...PARENT, isSampled: false } });
  assert.equal(passed?.context.traceId, PARENT.traceId);
  passed?.end();
});
