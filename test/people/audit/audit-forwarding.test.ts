/** The audit is forwarded to a file or a syslog receiver, and no entry is lost. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { appendFileSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { TokenId, UserId, WorkspaceId } from '#src/base/ids.ts';
import type { AuditEntry } from '#src/contract/wire/audit.ts';
import { AuditForwarding } from '#src/people/audit/audit-forwarding.ts';
import { openReceiver } from '#src/people/audit/audit-receiver.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { Shell } from '#test/faces/cli/troupe-process.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import {
  addWorkspaces,
  rememberingLog,
  temporaryDirectory,
  temporaryStore,
} from '#test/support/store/temporary-store.ts';

const [HOME, OTHER] = ['ws_home', 'ws_other'] as WorkspaceId[];

async function start(t: TestContext) {
  const temporary = await temporaryStore(t);
  addWorkspaces(temporary.store, HOME!, OTHER!);
  const { log, lines } = rememberingLog();
  let count = 0;
  return {
    lines,
    log,
    store: temporary.store,
    /** Adds this many entries to both workspaces, in turn. Resolves with all targets so far. */
    async note(entries: number) {
      const trail = new AuditTrail(temporary.store);
      for (let n = 0; n < entries; n++) {
        const workspaceId = n % 2 === 0 ? HOME! : OTHER!;
        const principal = {
          workspaceId,
          userId: 'ada' as UserId,
          tokenId: 'tok_1' as TokenId,
          role: 'owner',
          scopes: [],
        } as const;
        const change = { action: 'member.add', target: `t${count++}`, outcome: 'done' } as const;
        trail.note({ principal, address: '192.0.2.7', requestId: 'r' }, { ...change, detail: 'Ä "é"\n😀' });
      }
      await temporary.store.durable();
      return Array.from({ length: count }, (_, n) => `t${n}`).toSorted();
    },
    /** Forwards once with a new forwarder, as a restarted server does. */
    async forward(target: string) {
      const { store } = temporary;
      const trail = new AuditTrail(store);
      const receiver = openReceiver(target);
      const forwarding = new AuditForwarding({ store, cluster: ALONE, log }, trail, receiver);
      await forwarding.sweep();
      const { warnings } = forwarding;
      await forwarding[Symbol.asyncDispose]();
      return warnings;
    },
    reopen: () => temporary.reopen(),
  };
}

function targetsOf(lines: readonly string[]): string[] {
  return lines.map((line) => (JSON.parse(line) as AuditEntry).target).toSorted();
}

function linesOf(path: string): string[] {
  return readFileSync(path, 'utf8').split('\n').slice(0, -1);
}

/** A receiver that reads frames with a length before them, and the frames that it has read. */
async function startReceiver(t: TestContext, listenOn: string | number) {
  const received: string[] = [];
  const sockets = new Set<Socket>();
  let server: Server;
  const listen = async (at: string | number) => {
    server = createServer((socket) => {
      sockets.add(socket);
      let buffer = Buffer.alloc(0);
      socket.on('error', () => undefined);
      socket.on('data', (data) => {
        buffer = Buffer.concat([buffer, data]);
        for (;;) {
          const space = buffer.indexOf(' ');
          const length = Number(buffer.subarray(0, Math.max(space, 0)).toString());
          if (space < 0 || buffer.length < space + 1 + length) return;
          received.push(buffer.subarray(space + 1, space + 1 + length).toString());
          buffer = buffer.subarray(space + 1 + length);
        }
      });
    });
    server.listen(at);
    await once(server, 'listening');
  };
  const stop = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  await listen(listenOn);
  t.after(stop);
  const { port } = typeof listenOn === 'number' ? (server!.address() as AddressInfo) : { port: 0 };
  return { received, stop, port, again: () => listen(port) };
}

const HEAD = /^<110>1 \d{4}-\d\d-\d\dT[\d:.]+Z [\x21-\x7e]+ troupe \d+ member\.add - (?=\{)/;

function jsonOf(message: string): string {
  assert.match(message, HEAD);
  assert.match(message, /^[\x20-\x7e]*$/, 'ASCII only, so that no encoding has to be declared');
  return message.replace(HEAD, '');
}

test('a file gets each entry as a line of JSON, once, across restarts and rotation, and nobody else can read it', async (t) => {
  const { note, forward, reopen } = await start(t);
  const path = join(temporaryDirectory(t), 'audit.jsonl');
  await note(230);
  assert.deepEqual(await forward(path), []);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  await reopen();
  const all = await note(5);
  await forward(path);
  await forward(path);
  assert.deepEqual(targetsOf(linesOf(path)), all);
  const entry = JSON.parse(linesOf(path)[0]!);
  assert.deepEqual([entry.workspaceId, entry.detail, entry.userId], [HOME, 'Ä "é"\n😀', 'ada']);
  renameSync(path, `${path}.1`);
  const more = await note(3);
  await forward(path);
  assert.deepEqual(targetsOf([...linesOf(`${path}.1`), ...linesOf(path)]), more);
});

test('a line that a killed server left incomplete does not spoil the next one', async (t) => {
  const { note, forward } = await start(t);
  const path = join(temporaryDirectory(t), 'audit.jsonl');
  writeFileSync(path, '{"id":"aud_1"}\n');
  appendFileSync(path, '{"id":"aud_2","targ');
  const all = await note(2);
  await forward(path);
  const [, part, ...lines] = linesOf(path);
  assert.equal(part, '{"id":"aud_2","targ');
  assert.deepEqual(targetsOf(lines), all);
});

test('a receiver over TCP that was down gets everything once it is back, in messages of RFC 5424', async (t) => {
  const { note, forward, lines, reopen } = await start(t);
  const receiver = await startReceiver(t, 0);
  const target = `tcp://127.0.0.1:${receiver.port}`;
  await note(10);
  assert.deepEqual(await forward(target), []);
  await receiver.stop();
  await note(150);
  const [warning] = await forward(target);
  assert.equal(warning?.kind, 'audit_not_forwarded');
  assert.match(warning.text, /The audit has not been forwarded since/);
  assert.equal(lines.filter(({ msg }) => msg === 'the audit could not be forwarded').length, 1);
  await reopen();
  await receiver.again();
  const all = await note(150);
  assert.deepEqual(await forward(target), []);
  assert.deepEqual(targetsOf(receiver.received.map(jsonOf)), all);
});

test('a stream socket and a UDP receiver get the entries', async (t) => {
  const { note, forward } = await start(t);
  const path = join(temporaryDirectory(t), 'syslog.sock');
  const receiver = await startReceiver(t, path);
  const first = await note(4);
  assert.deepEqual(await forward(`unix:${path}`), []);
  assert.deepEqual(targetsOf(receiver.received.map(jsonOf)), first);
  const socket = createSocket('udp4');
  t.after(() => socket.close());
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const datagrams: string[] = [];
  socket.on('message', (message) => datagrams.push(message.toString()));
  const all = await note(4);
  assert.deepEqual(await forward(`udp://127.0.0.1:${socket.address().port}`), []);
  await eventually('all have arrived', () => datagrams.length === 4);
  assert.deepEqual(targetsOf([...receiver.received, ...datagrams].map(jsonOf)), all);
});

for (const workers of ['1', '3']) {
  test(`a server with ${workers} workers that is killed again and again forwards every entry of its audit`, async (t) => {
    const path = join(temporaryDirectory(t), 'audit.jsonl');
    let server = await startChildServer(t, { TROUPE_WORKERS: workers, TROUPE_AUDIT_FORWARD: path });
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 5; n++)
        await server.client.members.create({ userId: `u${round}-${n}`, role: 'viewer' });
      if (round === 1) await eventually('some are forwarded', () => existsSync(path));
      await server.end('SIGKILL');
      server = await server.again();
    }
    const expected = Array.from({ length: 15 }, (_, n) => `u${Math.floor(n / 5)}-${n % 5}`);
    const forwarded = () => new Set(existsSync(path) ? targetsOf(linesOf(path).filter(isWhole)) : []);
    await eventually('all are forwarded', () => expected.every((one) => forwarded().has(one)));
  });
}

test('a workspace whose entries arrive faster than the receiver takes them does not delay the entries of others', async (t) => {
  const { note, store, log } = await start(t);
  await note(4);
  const trail = new AuditTrail(store);
  const sent: string[] = [];
  const receiver = {
    async send([first]: readonly { readonly workspaceId: string }[]) {
      sent.push(first!.workspaceId);
      if (sent.length < 6) await note(2_000);
    },
    close: () => undefined,
  };
  const forwarding = new AuditForwarding({ store, cluster: ALONE, log }, trail, receiver);
  t.after(() => forwarding[Symbol.asyncDispose]());
  await forwarding.sweep();
  assert.deepEqual(sent.slice(0, 4), [HOME, OTHER, HOME, OTHER]);
  assert.deepEqual(new Set(sent.slice(4)), new Set([HOME, OTHER]));
});

test('an entry is never after its own time, even if the clock advances while it is noted', async (t) => {
  const { store } = await start(t);
  const trail = new AuditTrail(store);
  const principal = {
    workspaceId: HOME!,
    userId: 'ada' as UserId,
    tokenId: 'tok_1' as TokenId,
    role: 'owner',
    scopes: [],
  } as const;
  let ms = Date.now();
  t.mock.method(Date, 'now', () => ++ms);
  trail.note(
    { principal, address: '192.0.2.7', requestId: 'r' },
    { action: 'member.add', target: 't', outcome: 'done' },
  );
  await store.durable();
  const [entry] = (await trail.list(HOME!, { limit: 1 })).items;
  const { items } = await trail.list(HOME!, { limit: 1, createdAfter: entry!.createdAt });
  assert.deepEqual(items, []);
});

function isWhole(line: string): boolean {
  return line.endsWith('}');
}

test('troupe audit --follow --json prints a line for each entry as it is added', async (t) => {
  const server = await startChildServer(t);
  const shell = new Shell(t);
  await server.client.members.create({ userId: 'before', role: 'viewer' });
  const [before] = (await server.client.audit({ order: 'desc', limit: 1 })).items;
  const env = {
    SERVICE_BASE_URL: server.baseUrl,
    SERVICE_ACCESS_TOKEN: OWNER.token,
    SERVICE_WORKSPACE_ID: OWNER.workspaceId,
  };
  const child = shell.start(['audit', '--follow', '--json', '--since', before!.createdAt], { env });
  for (const userId of ['first', 'second']) {
    await server.client.members.create({ userId, role: 'viewer' });
    await child.until(`"${userId}"`);
  }
  child.kill();
  const { out } = await child.ended;
  assert.deepEqual(targetsOf(out.split('\n').slice(0, -1)), ['first', 'second']);
  const both = await shell.troupe(['audit', '--follow', '--newest'], { env });
  assert.match(both.err, /Use --follow or --newest, not both/);
});
