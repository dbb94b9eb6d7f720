/**
 * A vendor of models in a process of its own: it speaks OpenAI chat completions over a socket and answers as the name of
 * the model says. `stream-<rate>-<count>`: from the order `go` on so many tokens, so many in a second, each with the time at
 * which it was sent; the end of the answer from the order `end` on. `hang`: one token, and nothing more until the caller
 * leaves.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { TIME_MARK } from './readers.ts';

export type VendorOrder = 'go' | 'end';
export type VendorReport =
  | { readonly type: 'listening'; readonly port: number }
  /** So many have asked and wait for `go`. */
  | { readonly type: 'waiting'; readonly count: number }
  /** The last token of all is sent. */
  | { readonly type: 'said' }
  /** In wall-clock milliseconds. */
  | { readonly type: 'left'; readonly at: number };

/** Conversations take turns within a period, as they would if they had nothing to do with each other. */
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

/** A chunk of HTTP's, past the layers of Node.js: what the vendor costs is missing elsewhere. */
function say(socket: Socket, data: string): void {
  socket.write(`${(data.length + 8).toString(16)}\r\ndata: ${data}\n\n\r\n`, 'latin1');
}

function delta(content: object, finish: string | null = null): string {
  const choices = [{ index: 0, delta: content, finish_reason: finish }];
  return JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices });
}

const [BEFORE = '', BEHIND = ''] = delta({ content: '\u0001' }).split('\\u0001');

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
    // One token at a time, however late this is: what comes in one piece is not what is measured.
    talk.nextAt += talk.everyMs;
    say(talk.socket, `${BEFORE}${TIME_MARK}${wallMs().toFixed(3).padStart(17, '0')} ${BEHIND}`);
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
// Whoever started it is gone.
process.on('disconnect', () => process.exit(0));

server.listen(0, '127.0.0.1', () =>
  report({ type: 'listening', port: (server.address() as AddressInfo).port }),
);
