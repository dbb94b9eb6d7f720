// tier: whole, because it makes random or hostile input
/**
 * Malformed requests through each proxy of `deploy/`: the proxy and the server agree where every request ends. If they did not, a client
 * could hide a request in the body of another one, and its answer would reach somebody else.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { connect } from 'node:tls';
import { malformedRequests } from '#test/http/malformed-requests.ts';
import { bounded, eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import {
  behindProxies,
  lacksProxy,
  PROXIES,
  type ProxyName,
  startTlsProxy,
} from '#test/support/stand-ins/reverse-proxies.ts';
import { TEST_CERTIFICATE } from '#test/support/stand-ins/test-certificate.ts';

const USUAL = {
  authorization: `Bearer ${OWNER.token}`,
  'service-workspace-id': OWNER.workspaceId,
  'content-type': 'application/json',
};
/** nginx is started with 64 connections, of which each request needs two. */
const MAX_AT_ONCE = 20;
const OTHERS = 5;
const ME = '/api/v3/me';
const NOTEBOOKS = '/api/v3/notebooks';
const behind = behindProxies(test);
const server = await startServer(test, { ...behind.settings, TROUPE_LOG_LEVEL: 'debug' });

/** Returns a whole request with this id, after which the connection ends. */
function lastRequest(host: string, id: string): string {
  const fields = Object.entries({ host, ...USUAL, 'x-request-id': id, connection: 'close' });
  return `GET ${ME} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** Returns requests in whose body `hidden` is a request for those who see another end. */
function hiding(host: string, id: string, hidden: string): Readonly<Record<string, string>> {
  const fields = Object.entries({ host, ...USUAL, 'x-request-id': id })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const request = (method: string, framing: string, body: string) =>
    `${method} ${method === 'GET' ? ME : NOTEBOOKS} HTTP/1.1\r\n${fields}${framing}\r\n\r\n${body}`;
  const length = `content-length: ${hidden.length}`;
  const both = `0\r\n\r\n${hidden}`;
  const chunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
  const lengthOfBoth = `content-length: ${both.length}`;
  const codings = [
    'chunked',
    'CHUNKED',
    'xchunked',
    'chunked, identity',
    'identity',
    '',
    '\x0bchunked',
    'chunked;a=b',
  ];
  return {
    'the second of two lengths': request('POST', `content-length: 0\r\n${length}`, hidden),
    'the first of two lengths': request('POST', `${length}\r\ncontent-length: 0`, hidden),
    'a length of a GET': request('GET', length, hidden),
    'a length of a GET after an empty one': request('GET', `content-length:\r\n${length}`, hidden),
    'a length of a GET after an empty coding': request('GET', `transfer-encoding:\r\n${length}`, hidden),
    'a coding of a GET': request('GET', 'transfer-encoding: chunked', chunk),
    'an empty coding of a GET': request('GET', 'transfer-encoding:', chunk),
    'a length after a name without characters': request('POST', `: a\r\n${length}`, hidden),
    'a coding after a name without characters': request('POST', ': a\r\ntransfer-encoding: chunked', chunk),
    'a length with a space before the colon': request('POST', `content-length : ${hidden.length}`, hidden),
    'a length with an underscore': request('POST', `content_length: ${hidden.length}`, hidden),
    'a coding with an underscore': request('POST', 'transfer_encoding: chunked', chunk),
    'a length in a folded value': request('POST', `x-a: a\r\n ${length}`, hidden),
    'a length after LF': request('POST', `x-a: a\n${length}`, hidden),
    'a length after CR': request('POST', `x-a: a\r${length}`, hidden),
    'a hexadecimal length': request('POST', `content-length: 0x${hidden.length.toString(16)}`, hidden),
    'a length with a plus': request('POST', `content-length: +${hidden.length}`, hidden),
    'a coding, and a shorter length': request(
      'POST',
      'content-length: 4\r\ntransfer-encoding: chunked',
      chunk,
    ),
    'an extension with LF': request('POST', 'transfer-encoding: chunked', `2;\n{}\r\n${both}`),
    'a chunk beyond 64 bits': request(
      'POST',
      'transfer-encoding: chunked',
      `10000000000000000\r\n\r\n${hidden}`,
    ),
    ...Object.fromEntries(
      codings.map((coding) => [
        `the coding ${JSON.stringify(coding)} with a length`,
        request('POST', `transfer-encoding: ${coding}\r\n${lengthOfBoth}`, both),
      ]),
    ),
  };
}

/** Sends bytes over TLS. `closed` resolves once the proxy has ended the connection. */
function open(url: string, bytes: string) {
  const { hostname, port } = new URL(url);
  const options = { ca: TEST_CERTIFICATE, ALPNProtocols: ['http/1.1'], servername: '' };
  const socket = connect(Number(port), hostname, options);
  let text = '';
  socket.setEncoding('latin1').on('data', (piece) => {
    text += String(piece);
  });
  socket.on('error', () => {}); // the proxy may not read everything
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.write(bytes, 'latin1');
  return { socket, closed, text: () => text };
}

async function exchange(url: string, bytes: string): Promise<string> {
  const { closed, text } = open(url, bytes);
  await bounded('the proxy ends the connection', closed, () => `${bytes.slice(0, 2000)}\n${text()}`);
  return text();
}

const idsIn = (text: string) => [...text.matchAll(/^x-request-id: (\S+)\r$/gim)].map(([, id]) => id!);
const idsOfServer = () =>
  server.log.flatMap(({ request }) => {
    const { requestId } = Object(request);
    return typeof requestId === 'string' ? [requestId] : [];
  });

const count = (id: string, ids: readonly string[]) => ids.filter((one) => one === id).length;
/** Whether the server has carried out a request whose answer has not come to its sender. */
const isHidden = (id: string, received: readonly string[]) => count(id, idsOfServer()) > count(id, received);

for (const name of Object.keys(PROXIES) as ProxyName[])
  test(`no request can be hidden in another one through ${name}`, { skip: lacksProxy(name) }, async (t) => {
    const { baseUrl } = await startTlsProxy(t, name, behind.socketPath);
    const { host } = new URL(baseUrl);
    const table = (id: string) =>
      malformedRequests({
        host,
        path: ME,
        postPath: NOTEBOOKS,
        headers: { ...USUAL, 'x-request-id': id },
      });
    const cases = [
      ...table('').map((one, at) => ({
        what: one.name,
        bytes: (id: string, next: string) => table(id)[at]!.bytes + next,
      })),
      ...Object.keys(hiding('', '', '')).map((what) => ({
        what,
        bytes: (id: string, next: string) => hiding(host, id, next)[what]!,
      })),
    ];
    // Requests of others, which would get an answer that nobody took.
    const askForOthers = async (part: string) => {
      for (let n = 0; n < OTHERS; n++) {
        const id = `${name}-${part}-${n}`;
        const text = await exchange(baseUrl, lastRequest(host, id));
        assert.match(text, /^HTTP\/1\.1 200 /);
        assert.deepEqual(idsIn(text), [id]);
      }
      const last = `${name}-${part}-${OTHERS - 1}`;
      await eventually('the last of them is logged', () => idsOfServer().includes(last));
    };
    const wrong: string[] = [];
    for (let begin = 0; begin < cases.length; begin += MAX_AT_ONCE) {
      const exchanges = cases.slice(begin, begin + MAX_AT_ONCE).map(({ what, bytes }, at) => {
        const [first, next] = [`${name}-${begin + at}-first`, `${name}-${begin + at}-next`];
        return { what, first, next, ...open(baseUrl, bytes(first, lastRequest(host, next))) };
      });
      if (begin === 0)
        await eventually(
          'a usual request and the next one are answered',
          () => idsIn(exchanges[0]!.text()).length === 2,
        );
      await askForOthers(`beside-${begin}`);
      // If a request is hidden, its answer never comes, and the assertion below names it.
      await eventually('every request is answered where it was sent', () =>
        exchanges.every(
          (one) => !isHidden(one.next, idsIn(one.text())) && !isHidden(one.first, idsIn(one.text())),
        ),
      ).catch(() => {});
      for (const { what, first, next, text } of exchanges) {
        const received = idsIn(text());
        const isDouble = [first, next].some((id) => count(id, idsOfServer()) > 1);
        if (isDouble || isHidden(next, received))
          wrong.push(`${what}: answered ${received.join(', ') || 'nothing'}`);
      }
      // Some proxies wait for the rest of a body without a limit.
      for (const { socket } of exchanges) socket.destroy();
      await Promise.all(exchanges.map(({ closed }) => closed));
      await askForOthers(`after-${begin}`);
    }
    assert.deepEqual(wrong, []);
  });
