import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import test from 'node:test';
import type { AnswerChannel, ForwardedRequest } from '#src/cluster/peers/forwarding.ts';
import { BodyCharge, BodyMemory, MAX_BODY_MEMORY_BYTES, MAX_FREE_BYTES } from '#src/http/edge/body-memory.ts';
import { BodyStream } from '#src/http/edge/body-stream.ts';
import { ForwardedUpload } from '#src/http/peer/forwarded-upload.ts';
import { PeerResponse } from '#src/http/peer/peer-response.ts';
import type { WireResponse } from '#src/http/wire-exchange.ts';
import { eventually } from '#test/support/processes.ts';
import { startTwoWorkers } from './two-workers.ts';
import { LARGE, routesOf, type Seen } from './worker-routes.ts';

const PIECE = new ArrayBuffer(200 * 1024);
const DISCARDED_BYTES = 64 * 1024 * 1024;

/**
 * An upload of at most this many bytes, with its calls on the client and the bytes that it has
 * passed on.
 */
function openUpload(limitBytes: number, memory = new BodyMemory()) {
  const done: string[] = [];
  let passedOn = 0;
  let onData: (chunk: ArrayBuffer, isLast: boolean) => void = () => {};
  const res: Pick<WireResponse, 'onData' | 'pause' | 'resume'> = {
    onData: (handler) => {
      onData = handler;
    },
    pause: () => done.push('paused'),
    resume: () => done.push('resumed'),
  };
  const charge = BodyCharge.of({ principal: undefined, holder: undefined }, memory);
  const refuse = () => done.push('refused');
  const upload = new ForwardedUpload(res as WireResponse, { limitBytes, charge, refuse });
  const forwarded: Pick<ForwardedRequest, 'body'> = {
    body: ({ byteLength }) => {
      passedOn += byteLength;
    },
  };
  upload.sendTo(forwarded as ForwardedRequest);
  const receive = (chunk: ArrayBuffer, isLast = false) => onData(chunk, isLast);
  return { upload, receive, done, passedOn: () => passedOn };
}

test('a client whose worker has ended finishes its body and gets the answer after the last byte', () => {
  const { upload, receive, done, passedOn } = openUpload(PIECE.byteLength * 4);
  receive(PIECE);
  receive(PIECE);
  assert.deepEqual(done, ['paused']);
  upload.discard((isWhole) => done.push(`whole: ${isWhole}`));
  assert.deepEqual(done, ['paused', 'resumed']);
  receive(PIECE);
  upload.credit(PIECE.byteLength);
  receive(PIECE, true);
  assert.deepEqual(done, ['paused', 'resumed', 'whole: true']);
  assert.equal(passedOn(), 0);
});

test('a client whose whole body has arrived is answered at once', () => {
  const { upload, receive, done } = openUpload(PIECE.byteLength * 2);
  receive(PIECE);
  receive(PIECE, true);
  upload.discard((isWhole) => done.push(`whole: ${isWhole}`));
  assert.deepEqual(done, ['whole: true']);
});

test('the end of an upload that arrives after the pause lets its connection go on', () => {
  const { upload, receive, done } = openUpload(PIECE.byteLength * 3);
  receive(PIECE);
  receive(PIECE);
  assert.deepEqual(done, ['paused']);
  receive(PIECE, true);
  assert.deepEqual(done, ['paused', 'resumed']);
  upload.credit(PIECE.byteLength * 3);
  assert.deepEqual(done, ['paused', 'resumed']);
});

test('reading stops when a body is far beyond its limit, and the connection has to end', () => {
  const { upload, receive, done } = openUpload(0);
  upload.discard((isWhole) => done.push(`whole: ${isWhole}`));
  for (let bytes = 0; bytes <= DISCARDED_BYTES; bytes += PIECE.byteLength) receive(PIECE);
  receive(PIECE);
  assert.deepEqual(done, ['whole: false']);
});

test('a client that leaves while its body is discarded is not resumed and gets no answer', () => {
  const { upload, receive, done } = openUpload(PIECE.byteLength * 4);
  receive(PIECE);
  upload.discard((isWhole) => done.push(`whole: ${isWhole}`));
  upload.abandon();
  receive(PIECE, true);
  assert.deepEqual(done, []);
});

test('the bytes that an upload holds are charged, and an upload is refused one byte beyond the room', () => {
  const memory = new BodyMemory();
  const room = MAX_BODY_MEMORY_BYTES / 2;
  const others = room - PIECE.byteLength * 2;
  assert.equal(memory.take('', others), true);
  const { upload, receive, done } = openUpload(PIECE.byteLength * 9, memory);
  receive(PIECE);
  upload.credit(1); // which passes on the whole piece
  receive(PIECE);
  receive(PIECE);
  assert.deepEqual(done, ['paused']);
  receive(new ArrayBuffer(1));
  assert.deepEqual(done, ['paused', 'refused']);
  upload.abandon();
  assert.equal(memory.take('', room - others), true, 'everything was given back');
});

test('a small body that comes at once is passed on although there is no room, and ends with its only piece', async () => {
  const memory = new BodyMemory();
  assert.equal(memory.take('', MAX_BODY_MEMORY_BYTES / 2), true);
  const upload = openUpload(PIECE.byteLength, memory);
  const channel: Pick<AnswerChannel, 'credit'> = { credit: (bytes) => upload.upload.credit(bytes) };
  const response = new PeerResponse(channel as AnswerChannel, '', undefined);
  const charge = BodyCharge.of({ principal: undefined, holder: undefined }, memory);
  upload.upload.sendTo({
    body: (bytes, isLast) => response.body(Buffer.from(bytes), isLast),
    credit: () => {},
    abort: () => {},
  });
  const content = new BodyStream(response, PIECE.byteLength, charge);
  upload.receive(new ArrayBuffer(MAX_FREE_BYTES), true);
  const sizes: number[] = [];
  for await (const { byteLength } of content) sizes.push(byteLength);
  assert.deepEqual([sizes, upload.done], [[MAX_FREE_BYTES], []]);
});

test('the last piece that is passed on ends the body, even if the piece has no bytes', () => {
  for (const [lastBytes, creditBytes, expected] of [
    [
      5,
      100,
      [
        [7, false],
        [5, true],
      ],
    ],
    [
      0,
      100,
      [
        [7, false],
        [0, true],
      ],
    ],
    [0, 0, [[7, true]]],
    [
      5,
      0,
      [
        [7, false],
        [5, true],
      ],
    ],
  ] as const) {
    const { upload, receive } = openUpload(PIECE.byteLength);
    const passedOn: [number, boolean][] = [];
    upload.sendTo({
      body: ({ byteLength }, isLast) => passedOn.push([byteLength, isLast]),
      credit: () => {},
      abort: () => {},
    });
    upload.credit(creditBytes);
    receive(new ArrayBuffer(7));
    receive(new ArrayBuffer(lastBytes), true);
    upload.credit(100);
    assert.deepEqual(passedOn, expected);
  }
});

for (const framing of ['of known length', 'in chunks'])
  test(`a client whose upload ${framing} loses its worker reads 503, even if the client first sends its whole body`, async (t) => {
    const seen: Seen[] = [0, 1].map(() => ({
      begun: 0,
      subscribers: [],
      writable: 0,
      closed: 0,
      aborted: 0,
    }));
    const nobodyReads = new Promise<void>(() => {});
    const { servers, peers, workspaceIn } = await startTwoWorkers(t, (worker) =>
      routesOf(worker, seen[worker]!, nobodyReads),
    );
    const { host, port } = servers[0];
    const headers = { authorization: 'Bearer good', 'service-workspace-id': workspaceIn(1) };
    const request = http.request({ host, port, path: '/bytes', method: 'PUT', headers, agent: false });
    const response = once(request, 'response');
    if (framing === 'in chunks') request.write('a');
    else request.setHeader('content-length', LARGE.byteLength);
    const rest = LARGE.subarray(framing === 'in chunks' ? 1 : 0);
    let isSent = false;
    request.on('finish', () => {
      isSent = true;
    });
    request.end(rest);
    await eventually('the handler has begun', () => seen[1]!.begun === 1);
    peers[1][Symbol.dispose]();
    const [answer] = (await response) as [http.IncomingMessage];
    assert.equal(answer.statusCode, 503);
    // The event may come a turn after the answer. It would not come if the server had ended the connection before the last byte.
    await eventually('everything was sent', () => isSent);
  });
