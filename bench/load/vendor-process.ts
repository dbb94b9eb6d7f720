/**
 * A provider of models, in its own process. It speaks OpenAI chat completions, and the name of the model selects the answer.
 * `stream-<rate>-<count>` sends `count` tokens, `rate` per second, after the order `go`, each with the time at which it was sent,
 * and ends the answer after the order `end`. `hang` sends one token and then nothing until the caller closes the connection.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { TIME_MARK } from './readers.ts';

/** An order to the process. */
export type VendorOrder = 'go' | 'end';
/** A report of the process. */
export type VendorReport =
  | { readonly type: 'listening'; readonly port: number }
  /** How many requests have arrived and wait for `go`. */
  | { readonly type: 'waiting'; readonly count: number }
  /** The last token of all answers was sent. */
  | { readonly type: 'said' }
  /** A caller closed its connection, in wall-clock milliseconds. */
  | { readonly type: 'left'; readonly at: number };

/** Conversations start at different times within a period, as independent conversations would. */
const TICK_MS = 1;

interface Talk {
  readonly socket: Socket;
  readonly everyMs: number;
  left: number;
  nextAt: number;
}

const talking = new Set<Talk>();
const waiting: Talk[] = [];
const said: Talk[] = [];
let phase = 0;

const wallMs = () => performance.timeOrigin + performance.now();
const report = (message: VendorReport) => process.send?.(message);

const server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const { model } = JSON.parse(Buffer.concat(parts).toString('utf8')) as { model: string };
  const [kind = '', rate = '50', count = '1'] = model.split('-');
  const socket = begin(response);
  if (kind === 'hang') {
    response.once('close', () => report({ type: 'left', at: wallMs() }));
    say(socket, delta({ content: 'It has begun.' }));
    return;
  }
  const talk: Talk = { socket, everyMs: 1000 / Number(rate), left: Number(count), nextAt: 0 };
  response.once('close', () => talking.delete(talk));
  report({ type: 'waiting', count: waiting.push(talk) });
});

function begin(response: ServerResponse): Socket {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  return response.socket!;
}

/**
 * Writes an HTTP chunk directly to the socket, because the layers of Node.js would take processor time from the server
 * that is measured.
 */
function say(socket: Socket, data: string): void {
  socket.write(`${(data.length + 8).toString(16)}\r\ndata: ${data}\n\n\r\n`, 'latin1');
}

function delta(content: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta: content, finish_reason: finish }];
  return JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices });
}

const [BEFORE = '', AFTER = ''] = delta({ content: '\u0001' }).split('\\u0001');

function start(talk: Talk): void {
  phase = (phase + 7) % 1000;
  talk.nextAt = performance.now() + (phase / 1000) * talk.everyMs;
  talking.add(talk);
}

function end(talk: Talk): void {
  const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
  say(talk.socket, delta({}, 'stop'));
  say(
    talk.socket,
    JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage }),
  );
  say(talk.socket, '[DONE]');
  talk.socket.end('0\r\n\r\n');
}

setInterval(() => {
  const now = performance.now();
  for (const talk of talking) {
    if (talk.nextAt > now) continue;
    // Tokens are sent one by one, even late ones: the measurement is of single tokens.
    talk.nextAt += talk.everyMs;
    say(talk.socket, `${BEFORE}${TIME_MARK}${wallMs().toFixed(3).padStart(17, '0')} ${AFTER}`);
    if (--talk.left > 0) continue;
    talking.delete(talk);
    said.push(talk);
    if (talking.size === 0) report({ type: 'said' });
  }
}, TICK_MS);

process.on('message', (order: VendorOrder) => {
  if (order === 'go') for (const talk of waiting.splice(0)) start(talk);
  else for (const talk of said.splice(0)) end(talk);
});
// The parent process has ended.
process.on('disconnect', () => process.exit(0));

server.listen(0, '127.0.0.1', () =>
  report({ type: 'listening', port: (server.address() as AddressInfo).port }),
);
