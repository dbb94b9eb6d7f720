// tier: test, because it opens many connections with certificates of their own
/** Connections to a server's port for nodes, made by a program that need not keep to the rules. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { connect as connectTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import {
  type Credentials,
  makeAuthority,
  makeServerCredentials,
  requestCertificate,
  signNode,
} from '#src/confined/nodes/certificates.ts';
import { EnrolledNodes } from '#src/confined/nodes/enrolled-nodes.ts';
import { needsRenewal } from '#src/confined/nodes/host/state-folder.ts';
import { KernelArrivals } from '#src/confined/nodes/kernel-arrivals.ts';
import { KernelNodes } from '#src/confined/nodes/kernel-nodes.ts';
import { openNodeServer, Strangers } from '#src/confined/nodes/node-server.ts';
import { BEAT_MS, type FrameFields } from '#src/confined/nodes/protocol.ts';
import type { ChildListener } from '#src/confined/processes/host/zygote-process.ts';
import { writePrivateFile } from '#storage/disk/private-file.ts';
import { eventually } from '#test/support/processes.ts';
import { removeAfter } from '#test/support/remove-folder.ts';

const RELEASE = { version: '1.0.0', build: 'b', scripts: 'a', marimo: '0.25.2', python: '3.11.7' };
const CHECK = 'the text of the file';
const TOKEN = 'a'.repeat(64);
const someCertificate = (await makeAuthority()).cert;

interface Before {
  readonly waitMs?: number;
  readonly absenceMs?: number;
  /** The nodes that were enrolled before the start. */
  readonly names?: readonly string[];
}

async function openNodes(t: TestContext, { waitMs = 60_000, absenceMs, names = [] }: Before = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-nodes-'));
  removeAfter(t, folder);
  const enrolled = await EnrolledNodes.open(folder, writePrivateFile);
  const known = new Map<string, Credentials>();
  for (const name of names) known.set(name, await certify({ enrolled }, name));
  const arrivals = new KernelArrivals();
  const log: string[] = [];
  const note = (details: object, message: string) => void log.push(`${message} ${JSON.stringify(details)}`);
  const nodes = new KernelNodes({
    placement: 'spread',
    host: '127.0.0.1',
    port: 0,
    enrolled,
    arrivals,
    check: { path: '/workspaces/.troupe-nodes', text: CHECK },
    log: { info: note, warn: note, error: note },
    waitMs,
    ...(absenceMs !== undefined && { absenceMs }),
  });
  nodes.release = RELEASE;
  await nodes.listen();
  t.after(() => nodes[Symbol.asyncDispose]());
  return { nodes, enrolled, arrivals, log, known };
}

type Opened = Awaited<ReturnType<typeof openNodes>>;

/** Makes a key with a certificate of the authority. Unless `isListed` is false, the server knows it. */
async function certify(
  { enrolled }: { readonly enrolled: EnrolledNodes },
  name: string,
  isListed = true,
): Promise<Credentials> {
  const { key, request } = await requestCertificate(name);
  const cert = await signNode(enrolled.authority, name, request);
  if (isListed) enrolled.add(name, new X509Certificate(cert));
  return { key, cert };
}

/** A connection that reads lines. */
class Line {
  readonly socket: TLSSocket;
  readonly #lines: FrameFields[] = [];
  /** How many signs of life it was asked for. */
  pings = 0;
  #ended = false;

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    let left = '';
    socket
      .on('error', () => undefined)
      .on('close', () => {
        this.#ended = true;
      });
    socket.setEncoding('utf8').on('data', (text: string) => {
      const lines = (left + text).split('\n');
      left = lines.pop() ?? '';
      const messages = lines.map((line) => JSON.parse(line) as FrameFields);
      this.#lines.push(...messages.filter(({ op }) => op !== 'ping'));
      this.pings += messages.filter(({ op }) => op === 'ping').length;
    });
  }

  static async open(t: TestContext, { nodes, enrolled }: Opened, credentials?: Credentials): Promise<Line> {
    const socket = connect({
      host: '127.0.0.1',
      port: nodes.port,
      ca: enrolled.authority.cert,
      checkServerIdentity: () => undefined,
      ...credentials,
    });
    t.after(() => void socket.destroy());
    await once(socket, 'secureConnect');
    return new Line(socket);
  }

  say(message: FrameFields): void {
    this.socket.write(`${JSON.stringify(message)}\n`);
  }

  /** Resolves with the next message; with `ended` when the connection has ended instead. */
  next(): Promise<FrameFields> {
    return eventually('the next message', () => this.#lines.shift() ?? (this.#ended && { op: 'ended' }));
  }
}

const offer = (fields: FrameFields = {}): FrameFields => ({
  op: 'join',
  release: RELEASE,
  confinement: 'full',
  cores: 2,
  memoryBytes: 2 ** 33,
  capacity: 2,
  freeMemoryBytes: 2 ** 32,
  load: 0,
  filesProblem: null,
  ...fields,
});

async function joined(t: TestContext, opened: Opened, name: string, fields: FrameFields = {}) {
  const credentials = opened.known.get(name) ?? (await certify(opened, name));
  const line = await Line.open(t, opened, credentials);
  line.say(offer(fields));
  assert.equal((await line.next()).op, 'check');
  line.say({ op: 'checked', text: CHECK });
  assert.equal((await line.next()).op, 'welcome');
  return { line, credentials };
}

/** Orders a kernel, and records the reports. */
function order({ nodes, arrivals }: Opened, id: string, workspaceId = 'ws_1') {
  const reports: string[] = [];
  const listener: ChildListener = {
    placed: () => void reports.push('placed'),
    forked: (pid, _, node) => void reports.push(`forked ${pid} on ${node}`),
    connected: () => void reports.push('connected'),
    ended: ({ code }) => void reports.push(`ended ${code}`),
    refused: (reason) => void reports.push(`refused: ${reason}`),
    lost: () => void reports.push('lost'),
  };
  const fork = { op: 'fork', connection: { path: '/p', token: TOKEN } };
  const expecting = arrivals.expect(id, fork, listener);
  nodes.order(id, fork, expecting, { workspaceId });
  return reports;
}

const refusedBecause = async (line: Line, reason: RegExp) => {
  const { op, reason: given } = await line.next();
  assert.equal(op, 'refused');
  assert.match(String(given), reason);
};

test('a node joins only with a certificate of this server, and only while the node is enrolled', async (t) => {
  const opened = await openNodes(t);
  const foreign = await makeAuthority();
  const { key, request } = await requestCertificate('one');
  for (const [credentials, reason] of [
    [undefined, /certificate is not valid/],
    [{ key, cert: await signNode(foreign, 'one', request) }, /certificate is not valid/],
    [await certify(opened, 'one', false), /was removed/],
  ] as const) {
    const line = await Line.open(t, opened, credentials);
    line.say(offer());
    await refusedBecause(line, reason);
  }
  await joined(t, opened, 'one');
});

test('a node of another release is refused, and the list of nodes and the log name both releases', async (t) => {
  const opened = await openNodes(t);
  const line = await Line.open(t, opened, await certify(opened, 'one'));
  line.say(offer({ release: { ...RELEASE, python: '3.12.1' } }));
  await refusedBecause(line, /Python 3\.11\.7 and the node 3\.12\.1/);
  assert.match(opened.nodes.list()[0]?.problem ?? '', /Python 3\.11\.7 and the node 3\.12\.1/);
  assert(opened.log.some((entry) => /was refused.*3\.12\.1/.test(entry)));
});

test('a node that does not see the folder of the workspaces is refused', async (t) => {
  const opened = await openNodes(t);
  const credentials = await certify(opened, 'one');
  for (const [text, reason] of [
    [null, /cannot read \/workspaces\/\.troupe-nodes: mount/],
    ['another text', /is another one on the node/],
  ] as const) {
    const line = await Line.open(t, opened, credentials);
    line.say(offer());
    await line.next();
    line.say({ op: 'checked', text });
    await refusedBecause(line, reason);
  }
});

test('a node whose folder of workspaces is gone gets no new kernels until it is back', async (t) => {
  const opened = await openNodes(t);
  const { line } = await joined(t, opened, 'one');
  line.say({ op: 'pong', freeMemoryBytes: 2 ** 32, load: 0, filesProblem: 'It is gone.' });
  await eventually('the node drains', () => opened.nodes.list()[0]?.state === 'draining');
  const reports = order(opened, 'k1');
  assert.deepEqual([opened.nodes.waiting, reports], [1, []]);
  line.say({ op: 'pong', freeMemoryBytes: 2 ** 32, load: 0, filesProblem: null });
  assert.equal((await line.next()).id, 'k1');
});

test('the connection of a kernel needs the certificate of its node, its id and its token, and counts once', async (t) => {
  const opened = await openNodes(t);
  const one = await joined(t, opened, 'one');
  const two = await joined(t, opened, 'two', { freeMemoryBytes: 2 ** 31 });
  const reports = order(opened, 'k1');
  assert.equal((await one.line.next()).id, 'k1');
  const attempt = async (credentials: Credentials | undefined, id: string, token: string) => {
    const line = await Line.open(t, opened, credentials);
    line.say({ op: 'kernel', id, token });
    return line;
  };
  for (const wrong of [
    await attempt(undefined, 'k1', TOKEN),
    await attempt(two.credentials, 'k1', TOKEN),
    await attempt(one.credentials, 'k2', TOKEN),
    await attempt(one.credentials, 'k1', 'b'.repeat(64)),
    await attempt(one.credentials, 'k1', ''),
  ])
    await refusedBecause(wrong, /No kernel is expected/);
  assert.deepEqual(reports, ['placed']);
  await attempt(one.credentials, 'k1', TOKEN);
  await eventually('the kernel is connected', () => reports.includes('connected'));
  await refusedBecause(await attempt(one.credentials, 'k1', TOKEN), /No kernel is expected/);
});

test('an order that waits for room can be withdrawn, and no node gets it later', async (t) => {
  const opened = await openNodes(t);
  const withdrawn = order(opened, 'k1');
  const waiting = order(opened, 'k2');
  assert.equal(opened.nodes.waiting, 2);
  assert.equal(opened.nodes.signal('k1', 9), true);
  const { line } = await joined(t, opened, 'one');
  assert.equal((await line.next()).id, 'k2');
  assert.deepEqual([opened.nodes.waiting, withdrawn, waiting], [0, [], ['placed']]);
  assert.equal(opened.nodes.signal('unknown', 9), false);
});

test('an order that finds no room is refused with the reason', async (t) => {
  const opened = await openNodes(t, { waitMs: 50 });
  const alone = order(opened, 'k1');
  await eventually('it is refused', () => alone.length > 0);
  assert.deepEqual(alone, ['refused: No kernel node is connected.']);
  await joined(t, opened, 'one', { capacity: 1 });
  order(opened, 'k2');
  const second = order(opened, 'k3');
  await eventually('it is refused', () => second.length > 0);
  assert.deepEqual(second, ['refused: No kernel node has room for another kernel.']);
});

test('the next order gets the place of a kernel that has ended', async (t) => {
  const opened = await openNodes(t);
  const { line } = await joined(t, opened, 'one', { capacity: 1 });
  const first = order(opened, 'k1');
  const second = order(opened, 'k2');
  assert.equal((await line.next()).id, 'k1');
  line.say({ op: 'forked', id: 'k1', pid: 7, init: true });
  line.say({
    op: 'exited',
    id: 'k1',
    code: 0,
    signal: null,
    outOfMemory: false,
    machineOutOfMemory: false,
    words: '',
  });
  assert.equal((await line.next()).id, 'k2');
  assert.deepEqual([first, second], [['placed', 'forked 7 on one', 'ended 0'], ['placed']]);
});

test('a node that sends something unreadable is lost with its kernels, and other nodes stay', async (t) => {
  const opened = await openNodes(t);
  for (const words of [
    'no JSON\n',
    '{"op":"forked","id":7}\n',
    '{"op":"unknown","id":"k1"}\n',
    '{"op":"pong"}\n',
  ]) {
    const { line } = await joined(t, opened, 'bad');
    const reports = order(opened, 'k1');
    await eventually('the order has arrived', () => reports.includes('placed'));
    line.socket.write(words);
    await eventually('the kernel is lost', () => reports.includes('lost'));
    assert.equal(opened.nodes.list().find(({ name }) => name === 'bad')?.state, 'away');
  }
  await joined(t, opened, 'good');
  assert.equal(opened.nodes.list().find(({ name }) => name === 'good')?.state, 'joined');
});

test('of fifty machines with one invitation at once, one is enrolled', async (t) => {
  const opened = await openNodes(t);
  const secret = Buffer.from(opened.nodes.invite().code, 'base64url').subarray(0, 16).toString('base64url');
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const line = await Line.open(t, opened);
      const { request } = await requestCertificate(`m${n}`);
      line.say({ op: 'enrol', secret, name: `m${n}`, request });
      return (await line.next()).op;
    }),
  );
  assert.equal(answers.filter((op) => op === 'enrolled').length, 1);
  assert.equal(answers.filter((op) => op === 'refused').length, 49);
  assert.equal(opened.nodes.list().length, 1);
});

test('a machine with the name of a connected node gets another name', async (t) => {
  const opened = await openNodes(t);
  await joined(t, opened, 'laptop');
  const enrol = async (name: string) => {
    const line = await Line.open(t, opened);
    const secret = Buffer.from(opened.nodes.invite().code, 'base64url').subarray(0, 16).toString('base64url');
    line.say({ op: 'enrol', secret, name, request: (await requestCertificate(name)).request });
    return line.next();
  };
  assert.match(String((await enrol('laptop')).name), /^laptop-[0-9a-f]{8}$/);
  assert.equal((await enrol('other')).name, 'other');
  for (const name of ['', '.', '../x', 'a'.repeat(65), 'a b'])
    assert.equal((await enrol(name)).op, 'refused', name);
  assert.equal((await enrol('a'.repeat(64))).op, 'enrolled');
});

test('a certificate is renewed for the same key on the connection of its node, which stays', async (t) => {
  const opened = await openNodes(t);
  const { line, credentials } = await joined(t, opened, 'one');
  const { key, request } = await requestCertificate('one', credentials.key);
  line.say({ op: 'renew', request });
  const { op, certificate } = await line.next();
  assert.equal(op, 'certificate');
  const newer = { key, cert: String(certificate) };
  assert.notEqual(newer.cert, credentials.cert);
  order(opened, 'k1');
  assert.equal((await line.next()).id, 'k1');
  const kernel = await Line.open(t, opened, newer);
  kernel.say({ op: 'kernel', id: 'k1', token: TOKEN });
  await eventually('the kernel is taken', () => opened.nodes.list()[0]?.state === 'joined');
  const again = await Line.open(t, opened, newer);
  again.say(offer());
  assert.equal((await again.next()).op, 'check');
});

test('renewing the certificate of a node that is being removed does not add the node to the list again', async (t) => {
  const opened = await openNodes(t);
  const { enrolled, nodes } = opened;
  const { line, credentials } = await joined(t, opened, 'one');
  const { request } = await requestCertificate('one', credentials.key);
  const { authority } = enrolled;
  const set = (own: PropertyDescriptor) =>
    Object.defineProperty(enrolled, 'authority', { configurable: true, ...own });
  const get = () => {
    nodes.remove('one');
    return authority;
  };
  set({ get }); // the authority is read when the certificate is about to be made
  line.say({ op: 'renew', request });
  assert.equal((await line.next()).op, 'ended');
  set({ value: authority });
  for (let n = 0; n < 10; n++) await certify(opened, 'other', false); // these steps take longer than making one certificate
  assert.deepEqual(nodes.list(), []);
  const again = await Line.open(t, opened, credentials);
  again.say(offer());
  assert.match(String((await again.next()).reason), /^This node was removed/);
});

test('a node that asks for several certificates at once, or does not read, is given up', async (t) => {
  const opened = await openNodes(t);
  const { nodes, log } = opened;
  const asking = await joined(t, opened, 'asking');
  const { request } = await requestCertificate('asking', asking.credentials.key);
  const renew = `${JSON.stringify({ op: 'renew', request })}\n`;
  asking.line.socket.write(renew + renew);
  assert.equal((await asking.line.next()).op, 'ended');
  assert.ok(log.some((line) => line.includes('it asks for several certificates at once')));
  const deaf = await joined(t, opened, 'deaf');
  deaf.line.socket.pause();
  order(opened, 'k1');
  let signals = 0;
  while (nodes.list().some(({ state }) => state === 'joined') && signals < 1_000_000) {
    nodes.signal('k1', 2);
    if (++signals % 10_000 === 0) await new Promise(setImmediate);
  }
  assert.ok(log.some((line) => line.includes('it does not read')));
});

test('certificates are valid for a machine whose clock is a day behind', async () => {
  const authority = await makeAuthority();
  const { request } = await requestCertificate('one');
  const certificates = [
    authority.cert,
    (await makeServerCredentials(authority)).cert,
    await signNode(authority, 'one', request),
  ];
  const aDayAgo = Date.now() - 86_400_000;
  for (const certificate of certificates)
    assert(Date.parse(new X509Certificate(certificate).validFrom) <= aDayAgo);
});

test('a certificate is renewed in the last third of its life', () => {
  const day = 86_400_000;
  const { validFrom, validTo } = new X509Certificate(someCertificate);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  const due = to - (to - from) / 3;
  assert.deepEqual(
    [needsRenewal(someCertificate, due), needsRenewal(someCertificate, due + day)],
    [false, true],
  );
});

test('further silent connections close earlier ones, and nodes of the same and of another address can still join', async (t) => {
  const opened = await openNodes(t);
  const first = await joined(t, opened, 'first');
  let closed = 0;
  const silent = Array.from({ length: 600 }, (_, n) => {
    const localAddress = n % 2 === 0 ? '127.0.0.1' : '127.0.0.3';
    const socket = connectTcp({ host: '127.0.0.1', port: opened.nodes.port, localAddress });
    socket.on('error', () => undefined).once('close', () => closed++);
    t.after(() => void socket.destroy());
    return socket;
  });
  // The address of a node keeps 256 of its 300 connections, the other address 64.
  await eventually('the oldest are closed', () => closed === 600 - 256 - 64);
  assert.ok(
    silent.slice(0, 60).every(({ destroyed }) => destroyed),
    'the oldest make room',
  );
  await joined(t, opened, 'second');
  const reports = order(opened, 'k1');
  assert.match(String((await first.line.next()).op), /fork|welcome|ping|drain/);
  assert.deepEqual(reports, ['placed']);
});

test('silent connections of many addresses share a limit, and each further connection closes one of the address with most connections', async (t) => {
  const opened = await openNodes(t);
  let closed = 0;
  const silence = (localAddress: string, count: number) =>
    Array.from({ length: count }, () => {
      const socket = connectTcp({ host: '127.0.0.1', port: opened.nodes.port, localAddress });
      socket.on('error', () => undefined).once('close', () => closed++);
      t.after(() => void socket.destroy());
      return socket;
    });
  for (let n = 2; n <= 5; n++) silence(`127.0.0.${n}`, 64);
  const [lone] = silence('127.0.0.9', 1);
  await eventually('one was closed', () => closed === 1);
  assert.equal(lone!.destroyed, false);
});

test('a refused connection is closed, although the other side leaves it open', async (t) => {
  const opened = await openNodes(t);
  const halfOpen = { allowHalfOpen: true };
  const socket = connect({
    host: '127.0.0.1',
    port: opened.nodes.port,
    ca: opened.enrolled.authority.cert,
    checkServerIdentity: () => undefined,
    ...halfOpen,
  });
  socket.on('error', () => undefined);
  t.after(() => void socket.destroy());
  await once(socket, 'secureConnect');
  socket.write('{"op":"nothing"}\n');
  await eventually('the server has closed it', () => {
    socket.write('x'); // the system says so only when something is sent
    return socket.destroyed;
  });
});

/** Opens 65 connections whose first lines are never accepted, and looks at which of them the server closes. */
async function fillWithUnaccepted(t: TestContext, authority: Credentials, own: Partial<Credentials>) {
  const note = () => undefined;
  let taken = 0;
  const server = await openNodeServer({
    host: '127.0.0.1',
    ports: [0],
    authority,
    log: { info: note, warn: note, error: note },
    take: () => new Promise<never>(() => taken++),
  });
  t.after(() => server[Symbol.asyncDispose]());
  const open = async () => {
    const { port } = server;
    const socket = connect({
      host: '127.0.0.1',
      port,
      ca: authority.cert,
      checkServerIdentity: () => undefined,
      ...own,
    });
    socket.on('error', () => undefined);
    t.after(() => void socket.destroy());
    await once(socket, 'secureConnect');
    socket.write('{"op":"nothing"}\n');
    return socket;
  };
  const all: TLSSocket[] = [];
  for (let n = 0; n < 64; n++) all.push(await open());
  await eventually('all have said what they are for', () => taken === 64);
  all.push(await open());
  await eventually('the oldest makes room', () => all[0]!.destroyed);
  assert.equal(all.filter(({ destroyed }) => destroyed).length, 1);
}

test('a connection without a certificate counts until it is closed, also after its first line', async (t) =>
  fillWithUnaccepted(t, await makeAuthority(), {}));

test('a connection with the certificate of a node that was removed counts until it is closed', async (t) => {
  const authority = await makeAuthority();
  const { key, request } = await requestCertificate('removed');
  await fillWithUnaccepted(t, authority, { key, cert: await signNode(authority, 'removed', request) });
});

test('the addresses of one IPv6 network have the share of one address, except for addresses of nodes', () => {
  const strangers = new Strangers();
  const closed: string[] = [];
  const admit = (remoteAddress: string, remotePort = 1) => {
    const destroy = () => closed.push(remoteAddress);
    strangers.admit(
      Object.assign(new EventEmitter(), { remoteAddress, remotePort, destroy }) as unknown as Socket,
    );
  };
  for (let n = 1; n <= 64; n++) admit(`2001:db8::${n.toString(16)}`);
  admit('2001:db8:0:1::1');
  strangers.remember('2001:db8::ffff');
  for (let port = 1; port <= 100; port++) admit('2001:db8::ffff', port);
  assert.deepEqual(closed, []);
  admit('2001:db8::aaaa');
  assert.deepEqual(closed, ['2001:db8::1']);
});

test('a node is asked for a sign of life only after it has answered the last one', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const opened = await openNodes(t);
  const { line } = await joined(t, opened, 'one');
  for (let beat = 0; beat < 3; beat++) t.mock.timers.tick(BEAT_MS);
  order(opened, 'k1');
  assert.equal((await line.next()).op, 'fork');
  assert.equal(line.pings, 1);
  line.say({ op: 'pong', freeMemoryBytes: 2 ** 32, load: 0, filesProblem: null });
  await eventually('the next question', () => {
    t.mock.timers.tick(BEAT_MS);
    return line.pings > 1;
  });
});

test('a server that has just started orders no kernel before all enrolled nodes have come back', async (t) => {
  const opened = await openNodes(t, { names: ['one', 'two'] });
  const { line } = await joined(t, opened, 'one');
  const reports = order(opened, 'k1');
  assert.deepEqual(reports, []);
  await joined(t, opened, 'two', { capacity: 0 });
  assert.equal((await line.next()).op, 'fork');
  assert.deepEqual(reports, ['placed']);
});

test('a node that does not come back delays kernels only as long as its own kernels may live', async (t) => {
  const opened = await openNodes(t, { names: ['one', 'gone'], absenceMs: 50 });
  const { line } = await joined(t, opened, 'one');
  order(opened, 'k1');
  assert.equal((await line.next()).op, 'fork');
});
