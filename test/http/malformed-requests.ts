/** Unusual and malformed requests, each with the rule of the standard and the answers that this server may give. */

/** A request of the table. */
export interface MalformedRequest {
  readonly name: string;
  /** The section with the rule. Without another number it is one of RFC 9112. */
  readonly rule: string;
  readonly bytes: string;
  /** `closed` means that the connection ends without an answer. */
  readonly allowed: readonly (number | 'closed')[];
  /** Whether bytes after the request may be answered as another request. They may not where others may see another end of it. */
  readonly mayContinue: boolean;
}

/** The request that is sent with small changes. */
export interface Target {
  readonly host: string;
  /** A path that answers GET with 200. */
  readonly path: string;
  /** A path that answers POST of the body `{}` with 200 or 201. */
  readonly postPath: string;
  readonly headers: Readonly<Record<string, string>>;
}

const REFUSED = [400, 'closed'] as const;
const SERVED = [200, 201] as const;
const CHUNKS = '2\r\n{}\r\n0\r\n\r\n';
const LONG = 100_000;

/** Returns the table for requests to this target. */
export function malformedRequests({ host, path, postPath, headers }: Target): MalformedRequest[] {
  const others = Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  const fields = `host: ${host}\r\n${others}`;
  const get = (line: string, extra = '', base = fields) => `${line}\r\n${base}${extra}\r\n`;
  const usual = (extra: string) => get(`GET ${path} HTTP/1.1`, extra);
  const post = (framing: string, body = '{}') =>
    `POST ${postPath} HTTP/1.1\r\n${fields}${framing}\r\n\r\n${body}`;
  const chunked = (body: string, coding = 'chunked') => post(`transfer-encoding: ${coding}`, body);

  type Row = readonly [name: string, rule: string, bytes: string, allowed: MalformedRequest['allowed']];
  /** The end of these requests is certain, or they end the connection. */
  const certain: Row[] = [
    ['a usual GET', '2.1', usual(''), SERVED],
    ['a usual POST', '6.2', post('content-length: 2'), SERVED],
    [
      'a body of a GET',
      'RFC 9110, 9.3.1',
      `${get(`GET ${path} HTTP/1.1`, 'content-length: 2\r\n')}{}`,
      SERVED,
    ],
    ['leading zeros of a length', '6.2', post('content-length: 02'), [...SERVED, ...REFUSED]],
    ['a head of 15 KB', '5.4', usual(`x-a: ${'a'.repeat(15_000)}\r\n`), SERVED],
    ['an expectation', 'RFC 9110, 10.1.1', post('expect: 100-continue\r\ncontent-length: 2'), SERVED],
    [
      'an unknown expectation',
      'RFC 9110, 10.1.1',
      post('expect: tea\r\ncontent-length: 2'),
      [...SERVED, 417],
    ],
    ['an upgrade to HTTP/2', 'RFC 9110, 7.8', usual('connection: upgrade\r\nupgrade: h2c\r\n'), SERVED],
    ['an unknown method', 'RFC 9110, 9.1', get(`BREW ${path} HTTP/1.1`), [405, 501]],
    ['a method in lower case', 'RFC 9110, 9.1', get(`get ${path} HTTP/1.1`), [400, 405, 501]],
    ['TRACE', 'RFC 9110, 9.3.8', get(`TRACE ${path} HTTP/1.1`), [405, 501]],
    ['a fragment in the target', '3.2', get(`GET ${path}#a HTTP/1.1`), [400, 404]],
    ['letters of another alphabet in the target', '3.2', get(`GET ${path}\xe4 HTTP/1.1`), [400, 404]],
    ['two slashes', '3.2', get(`GET /${path} HTTP/1.1`), [400, 404]],
    ['every character of a name', 'RFC 9110, 5.6.2', usual("x!#$%&'*+-.^_`|~9: a\r\n"), SERVED],
    ['a value in another alphabet', 'RFC 9110, 5.5', usual('x-a: \xe4\r\n'), [...SERVED, 400]],
    ['DEL in a value', 'RFC 9110, 5.5', usual('x-a: a\x7fb\r\n'), [...SERVED, 400]],
    ['a name without characters', '5.1', usual(': a\r\n'), [...SERVED, 400]],
    [
      'a host that is none',
      '3.2',
      get(`GET ${path} HTTP/1.1`, '', `host: a b@c/d\r\n${others}`),
      [...SERVED, 400],
    ],
    ['an empty host', '3.2', get(`GET ${path} HTTP/1.1`, '', `host:\r\n${others}`), [...SERVED, 400]],
    ['no host', '3.2', get(`GET ${path} HTTP/1.1`, '', others), [400]],
    ['two hosts', '3.2', usual('host: y\r\n'), [400]],
    ['HTTP/1.0', '2.3', get(`GET ${path} HTTP/1.0`), [...SERVED, 505]],
    ['HTTP/1.2', '2.3', get(`GET ${path} HTTP/1.2`), [...SERVED, 505]],
    ['HTTP/2', '2.3', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 505]],
    ['a version in lower case', '2.3', get(`GET ${path} http/1.1`), [400, 505]],
    ['no version', '3', `GET ${path}\r\n\r\n`, [400, 505, 'closed']],
    ['an absolute target', '3.2.2', get(`GET http://${host}${path} HTTP/1.1`), [...SERVED, 400, 505]],
    ['OPTIONS for the whole server', '3.2.4', get('OPTIONS * HTTP/1.1'), [200, 204, 400, 505]],
    ['CONNECT', '3.2.3', get(`CONNECT ${host}:80 HTTP/1.1`), [400, 405, 501, 505]],
    ['a target without a slash', '3.2', get('GET a HTTP/1.1'), [400, 505]],
    ['a space in the target', '3.2', get(`GET ${path} a HTTP/1.1`), [400, 505]],
    ['two spaces', '3', get(`GET  ${path} HTTP/1.1`), [...SERVED, 400, 505]],
    ['a tab for a space', '3', get(`GET\t${path} HTTP/1.1`), [...SERVED, 400, 505]],
    ['a space after the version', '3', get(`GET ${path} HTTP/1.1 `), [...SERVED, 400, 505]],
    ['NUL in the target', '3.2', get(`GET ${path}\0 HTTP/1.1`), [400, 505]],
    ['an empty line in front', '2.2', `\r\n${usual('')}`, [...SERVED, ...REFUSED]],
    ['LF in front', '2.2', `\n${usual('')}`, [...SERVED, 400, 505]],
    ['a long method', '3', get(`${'A'.repeat(LONG)} ${path} HTTP/1.1`), [400, 431, 501]],
    ['a long target', '3', get(`GET /${'a'.repeat(LONG)} HTTP/1.1`), [414, 431]],
    ['a long value', '5.4', usual(`x-a: ${'a'.repeat(LONG)}\r\n`), [431]],
    ['a long name', '5.4', usual(`${'a'.repeat(LONG)}: a\r\n`), [431, 400]],
    ['many headers', '5.4', usual('x-a: a\r\n'.repeat(200)), [431, 400]],
  ];
  /** Requests that a proxy may see end at another byte than this server does. */
  const uncertain: Row[] = [
    ['two lengths', '6.3', post('content-length: 2\r\ncontent-length: 3'), REFUSED],
    ['one length twice', '6.3', post('content-length: 2\r\ncontent-length: 2'), REFUSED],
    ['a list of lengths', '6.3', post('content-length: 2, 2'), REFUSED],
    ['a length with a plus', '6.2', post('content-length: +2'), REFUSED],
    ['a negative length', '6.2', post('content-length: -2'), REFUSED],
    ['a hexadecimal length', '6.2', post('content-length: 0x2'), REFUSED],
    ['a length of two numbers', '6.2', post('content-length: 2 2'), REFUSED],
    ['an empty length', '6.2', post('content-length:'), REFUSED],
    ['a length beyond 64 bits', '6.2', post('content-length: 99999999999999999999'), REFUSED],
    [
      'a length and a coding',
      '6.3',
      post('content-length: 12\r\ntransfer-encoding: chunked', CHUNKS),
      REFUSED,
    ],
    [
      'a coding and a length',
      '6.3',
      post('transfer-encoding: chunked\r\ncontent-length: 12', CHUNKS),
      REFUSED,
    ],
    ['an unknown coding', '6.1', chunked(CHUNKS, 'xchunked'), [...REFUSED, 501]],
    ['two codings', '6.1', chunked(CHUNKS, 'gzip, chunked'), [...REFUSED, 501]],
    ['chunked twice', '6.1', chunked(CHUNKS, 'chunked, chunked'), [...REFUSED, 501]],
    [
      'two lines of codings',
      '6.1',
      chunked(CHUNKS, 'chunked\r\ntransfer-encoding: chunked'),
      [...REFUSED, 501],
    ],
    ['an empty coding', '6.1', chunked('', ''), [...REFUSED, 501]],
    ['a coding with a control character', 'RFC 9110, 5.5', chunked(CHUNKS, '\x0bchunked'), REFUSED],
    ['a usual body in chunks', '7.1', chunked(CHUNKS), SERVED],
    ['a coding in capitals', '7', chunked(CHUNKS, 'CHUNKED'), SERVED],
    ['a tab before the coding', '5.1', chunked(CHUNKS, '\tchunked'), SERVED],
    ['an extension of a chunk', '7.1.1', chunked('2;a=b\r\n{}\r\n0\r\n\r\n'), [...SERVED, ...REFUSED]],
    ['trailers', '7.1.2', chunked('2\r\n{}\r\n0\r\nx-a: a\r\n\r\n'), [...SERVED, ...REFUSED, 505]],
    [
      'a length in the trailers',
      '7.1.2',
      chunked('2\r\n{}\r\n0\r\ncontent-length: 50\r\n\r\n'),
      [...SERVED, ...REFUSED, 505],
    ],
    ['a negative chunk', '7.1', chunked('-2\r\n{}\r\n0\r\n\r\n'), REFUSED],
    ['a chunk with 0x', '7.1', chunked('0x2\r\n{}\r\n0\r\n\r\n'), REFUSED],
    ['a chunk beyond 64 bits', '7.1', chunked('10000000000000002\r\n{}\r\n0\r\n\r\n'), REFUSED],
    ['a chunk without a size', '7.1', chunked('\r\n{}\r\n0\r\n\r\n'), REFUSED],
    ['a space after the size', '7.1', chunked('2 \r\n{}\r\n0\r\n\r\n'), [...SERVED, ...REFUSED]],
    ['LF after the size', '7.1', chunked('2\n{}\r\n0\r\n\r\n'), [...SERVED, ...REFUSED]],
    ['a chunk that is too long', '7.1', chunked('2\r\n{}}\r\n0\r\n\r\n'), [...SERVED, ...REFUSED]],
    ['a folded value', '5.2', usual('x-a: a\r\n b\r\n'), REFUSED],
    ['a space before the colon', '5.1', post('content-length : 2'), REFUSED],
    ['a space before the first name', '2.2', `GET ${path} HTTP/1.1\r\n ${fields}\r\n`, REFUSED],
    ['NUL in a value', 'RFC 9110, 5.5', usual('x-a: a\0b\r\n'), REFUSED],
    ['CR in a value', 'RFC 9110, 5.5', usual('x-a: a\rb\r\n'), REFUSED],
    ['another control character in a value', 'RFC 9110, 5.5', usual('x-a: a\x0bb\r\n'), REFUSED],
    ['a bracket in a name', '5.1', usual('x(a: a\r\n'), REFUSED],
    ['a line without a colon', '5', usual('x-a\r\n'), REFUSED],
    ['LF for all ends of lines', '2.2', usual('').replaceAll('\r', ''), [400, 505]],
    ['LF after the first line', '2.2', usual('').replace('\r', ''), [400, 505]],
    ['LF after a header', '2.2', usual('x-a: b\nx-b: c\r\n'), REFUSED],
    ['LF at the end', '2.2', usual('').replace(/\r\n$/, '\n'), REFUSED],
  ];
  const rowsOf = (rows: readonly Row[], mayContinue: boolean) =>
    rows.map(([name, rule, bytes, allowed]) => ({ name, rule, bytes, allowed, mayContinue }));
  return [...rowsOf(certain, true), ...rowsOf(uncertain, false)];
}
