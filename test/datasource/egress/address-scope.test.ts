import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseHost } from '#src/base/net/ip-address.ts';
import { type AddressScope, scopeOf } from '#src/datasource/egress/address-scope.ts';

const OWN = new Set(['203.0.113.9', '2001:db8::9']);

/** An address as it may be written, its canonical form, and its scope. */
const ADDRESSES: readonly (readonly [written: string, address: string, scope: AddressScope])[] = [
  ['8.8.8.8', '8.8.8.8', 'public'],
  ['192.0.2.1', '192.0.2.1', 'public'],
  ['203.0.113.9', '203.0.113.9', 'loopback'],
  ['127.0.0.1', '127.0.0.1', 'loopback'],
  ['127.255.255.254', '127.255.255.254', 'loopback'],
  ['127.0.0.1.', '127.0.0.1', 'loopback'],
  ['127.1', '127.0.0.1', 'loopback'],
  ['0177.0.0.1', '127.0.0.1', 'loopback'],
  ['0x7f.0.0.1', '127.0.0.1', 'loopback'],
  ['0x7F000001', '127.0.0.1', 'loopback'],
  ['2130706433', '127.0.0.1', 'loopback'],
  ['017700000001', '127.0.0.1', 'loopback'],
  ['１２７.0.0.1', '127.0.0.1', 'loopback'],
  ['10.0.0.1', '10.0.0.1', 'private'],
  ['10.255.255.255', '10.255.255.255', 'private'],
  ['11.0.0.0', '11.0.0.0', 'public'],
  ['0x0a000001', '10.0.0.1', 'private'],
  ['172.15.255.255', '172.15.255.255', 'public'],
  ['172.16.0.0', '172.16.0.0', 'private'],
  ['172.31.255.255', '172.31.255.255', 'private'],
  ['172.32.0.0', '172.32.0.0', 'public'],
  ['192.168.1.1', '192.168.1.1', 'private'],
  ['100.64.0.1', '100.64.0.1', 'private'],
  ['100.100.100.200', '100.100.100.200', 'forbidden'],
  ['198.18.0.1', '198.18.0.1', 'private'],
  ['0.0.0.0', '0.0.0.0', 'forbidden'],
  ['0', '0.0.0.0', 'forbidden'],
  ['0.1.2.3', '0.1.2.3', 'forbidden'],
  ['169.254.169.254', '169.254.169.254', 'forbidden'],
  ['2852039166', '169.254.169.254', 'forbidden'],
  ['0xa9.0xfe.0xa9.0xfe', '169.254.169.254', 'forbidden'],
  ['0251.0376.0251.0376', '169.254.169.254', 'forbidden'],
  ['169.254.0.1', '169.254.0.1', 'forbidden'],
  ['168.63.129.16', '168.63.129.16', 'forbidden'],
  ['192.0.0.192', '192.0.0.192', 'forbidden'],
  ['224.0.0.1', '224.0.0.1', 'forbidden'],
  ['239.255.255.255', '239.255.255.255', 'forbidden'],
  ['240.0.0.1', '240.0.0.1', 'forbidden'],
  ['255.255.255.255', '255.255.255.255', 'forbidden'],
  ['2606:4700::1111', '2606:4700::1111', 'public'],
  ['[2606:4700::1111]', '2606:4700::1111', 'public'],
  ['2001:db8::9', '2001:db8::9', 'loopback'],
  ['2001:db8:0:0::9', '2001:db8::9', 'loopback'],
  ['::1', '::1', 'loopback'],
  ['0:0:0:0:0:0:0:1', '::1', 'loopback'],
  ['::', '::', 'forbidden'],
  ['fe80::1', 'fe80::1', 'forbidden'],
  ['febf::1', 'febf::1', 'forbidden'],
  ['fec0::1', 'fec0::1', 'forbidden'],
  ['ff02::1', 'ff02::1', 'forbidden'],
  ['fc00::1', 'fc00::1', 'private'],
  ['fd12:3456::1', 'fd12:3456::1', 'private'],
  ['fd00:ec2::254', 'fd00:ec2::254', 'forbidden'],
  ['fd20:ce::254', 'fd20:ce::254', 'forbidden'],
  ['::ffff:127.0.0.1', '127.0.0.1', 'loopback'],
  ['::ffff:7f00:1', '127.0.0.1', 'loopback'],
  ['0:0:0:0:0:FFFF:A9FE:A9FE', '169.254.169.254', 'forbidden'],
  ['::ffff:8.8.8.8', '8.8.8.8', 'public'],
  ['::ffff:10.0.0.1', '10.0.0.1', 'private'],
  ['::127.0.0.1', '::7f00:1', 'forbidden'],
  ['::ffff:0:127.0.0.1', '::ffff:0:7f00:1', 'forbidden'],
  ['::ffff:0:8.8.8.8', '::ffff:0:808:808', 'public'],
  ['64:ff9b::169.254.169.254', '64:ff9b::a9fe:a9fe', 'forbidden'],
  ['64:ff9b::10.0.0.1', '64:ff9b::a00:1', 'forbidden'],
  ['64:ff9b::8.8.8.8', '64:ff9b::808:808', 'public'],
  ['64:ff9b:1::8.8.8.8', '64:ff9b:1::808:808', 'forbidden'],
  ['2002:7f00:1::', '2002:7f00:1::', 'forbidden'],
  ['2002:a9fe:a9fe::1', '2002:a9fe:a9fe::1', 'forbidden'],
  ['2002:808:808::1', '2002:808:808::1', 'public'],
  ['2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001:0:4136:e378:8000:63bf:3fff:fdd2', 'forbidden'],
  ['2606:4700::5efe:10.0.0.1', '2606:4700::5efe:a00:1', 'forbidden'],
];

for (const [written, address, scope] of ADDRESSES) {
  test(`${written} is ${address}, which is ${scope}`, () => {
    const host = parseHost(written);
    assert(host.kind === 'address');
    assert.deepEqual([host.address.text, scopeOf(host.address, OWN)], [address, scope]);
  });
}

const NAMES: readonly (readonly [written: string, name: string])[] = [
  ['db.example.com', 'db.example.com'],
  ['DB.Example.COM.', 'db.example.com'],
  ['bücher.example', 'xn--bcher-kva.example'],
  ['_service.example', '_service.example'],
  ['127.0.0.1.example', '127.0.0.1.example'],
];

for (const [written, name] of NAMES) {
  test(`${written} is the name ${name}`, () => {
    assert.deepEqual(parseHost(written), { kind: 'name', name });
  });
}

for (const written of [
  '',
  '.',
  '..',
  'a b',
  'a/b',
  'a@b',
  'a,b',
  'a..b',
  '-a',
  '/var/run/postgresql',
  'fe80::1%eth0',
  '[fe80::1%25eth0]',
  '127.0.0.1%lo',
  '1.2.3.4.5',
  '256.0.0.1',
  'host:5432',
  '::g',
  'a\0b',
  '127。0。0。1',
  `${'a'.repeat(64)}.example`,
]) {
  test(`${JSON.stringify(written)} is not a host`, () => {
    assert.deepEqual(parseHost(written), { kind: 'invalid' });
  });
}
