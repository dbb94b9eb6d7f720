import assert from 'node:assert/strict';
import test from 'node:test';
import { publicOriginOf } from '#src/http/edge/origin.ts';
import { attachment, describeUntrusted } from '#src/http/reply/content-headers.ts';
import { parseByteRange } from '#src/http/reply/content-reply.ts';

const RANGES: readonly (readonly [header: string, size: number, expected: unknown])[] = [
  ['bytes=0-0', 10, { first: 0, last: 0 }],
  ['bytes=0-9', 10, { first: 0, last: 9 }],
  ['bytes=9-9', 10, { first: 9, last: 9 }],
  ['bytes=3-', 10, { first: 3, last: 9 }],
  ['bytes=3-999', 10, { first: 3, last: 9 }],
  ['bytes=3-99999999999999999999999', 10, { first: 3, last: 9 }],
  ['bytes=-1', 10, { first: 9, last: 9 }],
  ['bytes=-10', 10, { first: 0, last: 9 }],
  ['bytes=-11', 10, { first: 0, last: 9 }],
  ['Bytes=1-2', 10, { first: 1, last: 2 }],
  ['bytes= 1-2\t', 10, { first: 1, last: 2 }],
  ['bytes=10-', 10, 'unsatisfiable'],
  ['bytes=10-20', 10, 'unsatisfiable'],
  ['bytes=-0', 10, 'unsatisfiable'],
  ['bytes=0-', 0, 'unsatisfiable'],
  ['bytes=-5', 0, 'unsatisfiable'],
  ['', 10, 'whole'],
  ['bytes=', 10, 'whole'],
  ['bytes=-', 10, 'whole'],
  ['bytes=5-4', 10, 'whole'],
  ['bytes=0-1,3-4', 10, 'whole'],
  ['bytes=a-b', 10, 'whole'],
  ['bytes=0x1-2', 10, 'whole'],
  ['bytes=--1', 10, 'whole'],
  ['lines=1-2', 10, 'whole'],
];

for (const [header, size, expected] of RANGES) {
  test(`for ${size} bytes, ${JSON.stringify(header)} requests ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(parseByteRange(header, size), expected);
  });
}

const TYPES: readonly (readonly [mimetype: string, contentType: string, disposition: string])[] = [
  ['image/png', 'image/png', 'inline'],
  ['IMAGE/PNG', 'image/png', 'inline'],
  ['image/jpeg', 'image/jpeg', 'inline'],
  ['image/gif', 'image/gif', 'inline'],
  ['image/webp', 'image/webp', 'inline'],
  ['image/avif', 'image/avif', 'inline'],
  ['text/plain', 'text/plain; charset=utf-8', 'inline'],
  ['text/html', 'text/html; charset=utf-8', 'attachment'],
  ['text/xml', 'text/xml; charset=utf-8', 'attachment'],
  ['image/svg+xml', 'image/svg+xml', 'attachment'],
  ['application/pdf', 'application/pdf', 'attachment'],
  ['application/xhtml+xml', 'application/xhtml+xml', 'attachment'],
  ['application/vnd.vegalite.v6+json', 'application/vnd.vegalite.v6+json', 'attachment'],
  ['image/png; charset=x', 'application/octet-stream', 'attachment'],
  ['image/png\r\nset-cookie: a=b', 'application/octet-stream', 'attachment'],
  ['image/png\n', 'application/octet-stream', 'attachment'],
  ['image/png ', 'application/octet-stream', 'attachment'],
  ['image/png,text/html', 'application/octet-stream', 'attachment'],
  ['image/png\u0000', 'application/octet-stream', 'attachment'],
  ['ima\u0131e/png', 'application/octet-stream', 'attachment'],
  [`image/${'x'.repeat(200)}`, 'application/octet-stream', 'attachment'],
  ['png', 'application/octet-stream', 'attachment'],
  ['a/b/c', 'application/octet-stream', 'attachment'],
  ['*/*', 'application/octet-stream', 'attachment'],
  ['', 'application/octet-stream', 'attachment'],
];

for (const [mimetype, contentType, disposition] of TYPES) {
  test(`the type ${JSON.stringify(mimetype.slice(0, 40))} is sent as ${contentType}, ${disposition}`, () => {
    assert.deepEqual(describeUntrusted(mimetype), { contentType, disposition });
  });
}

const NAMES: readonly (readonly [name: string, header: string])[] = [
  ['report.py', `attachment; filename="report.py"; filename*=UTF-8''report.py`],
  ['Über (2).md', `attachment; filename="Uber (2).md"; filename*=UTF-8''%C3%9Cber%20%282%29.md`],
  ['日本.html', `attachment; filename="__.html"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.html`],
  ['a"b\\c%d.py', `attachment; filename="a_b_c_d.py"; filename*=UTF-8''a%22b%5Cc%25d.py`],
  [
    'a\r\nset-cookie: b',
    `attachment; filename="a__set-cookie: b"; filename*=UTF-8''a%0D%0Aset-cookie%3A%20b`,
  ],
  ['half \ud800', `attachment; filename="half _"; filename*=UTF-8''half%20_`],
];

for (const [name, header] of NAMES) {
  test(`a file named ${JSON.stringify(name)} is offered under a name that every client accepts`, () => {
    assert.equal(attachment(name), header);
    assert.match(header, /^[\x20-\x7e]*$/);
  });
}

const ORIGINS: readonly (readonly [host: string, proto: string, origin: string])[] = [
  ['127.0.0.1:8787', '', 'http://127.0.0.1:8787'],
  ['[::1]:8787', '', 'http://[::1]:8787'],
  ['troupe.example', 'https', 'https://troupe.example'],
  ['troupe.example', 'HTTPS, http', 'https://troupe.example'],
  ['troupe.example', 'javascript', 'http://troupe.example'],
];

for (const [host, proto, origin] of ORIGINS) {
  test(`a caller of ${host} ${proto === '' ? 'without a proxy' : `by way of ${proto}`} has reached ${origin}`, () => {
    assert.equal(publicOriginOf(host, proto), origin);
  });
}

for (const host of [
  '',
  'a b',
  'evil.example/"><script>',
  'a@b',
  'a:b',
  'a:123456',
  '-a',
  'a\\b',
  '[::1',
  'ä.example',
]) {
  test(`no link names the host ${JSON.stringify(host)}`, () => {
    assert.throws(() => publicOriginOf(host, ''), { code: 'invalid_request' });
  });
}
