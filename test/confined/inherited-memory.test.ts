// own kernel host: it looks at the processes and the end of the host
// tier: whole, because it measures memory
/**
 * Searches a kernel's memory, a copy of the kernel host's, for data of other workspaces, and measures the cost of an opening to
 * the kernel host.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { SyntaxJudge } from '#src/confined/processes/children/syntax-judge.ts';
import type { KernelHostOptions } from '#src/confined/processes/host/kernel-host-options.ts';
import { type StartZygote, ZygoteProcess } from '#src/confined/processes/host/zygote-process.ts';
import type { KernelLaunch } from '#src/confined/processes/kernel/kernel.ts';
import { openKernel, startTestHost, TestKernel } from './kernel-fixture.ts';

/**
 * Begins each mark; a hyphen or a slash and 16 hexadecimal digits follow. The code that searches memory writes it in two halves,
 * so that the search does not find itself.
 */
const MARK = 'zq7mark';
const SEARCH = `
import re
found, before = set(), b""
wanted = re.compile(("zq7" + "mark").encode() + rb"[-/]([0-9a-f]{16})")
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.read().splitlines():
        span, rights, *_ = line.split()
        at, end = (int(one, 16) for one in span.split("-"))
        before = b""
        while rights[0] == "r" and at < end:
            try:
                memory.seek(at)
                piece = memory.read(min(1 << 20, end - at))
            except (OSError, ValueError, OverflowError):  # [vvar], [vsyscall]
                break
            if not piece:
                break
            found.update(match.decode() for match in wanted.findall(before + piece))
            before, at = piece[-64:], at + len(piece)
print(" ".join(sorted(found)))
`;

async function search(kernel: TestKernel): Promise<string[]> {
  const { stdout } = await kernel.run({ search: SEARCH });
  return stdout.split(/\s+/).filter((word) => word !== '');
}

/** A host whose sockets lie in a folder that the search recognises, and the names of all that it has made. */
async function startMarkedHost(t: TestContext, options: Partial<KernelHostOptions>) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-m-'));
  const runDir = join(folder, MARK);
  mkdirSync(runDir, { mode: 0o700 });
  const host = await startTestHost({ runDir, hiddenPaths: [runDir], ...options });
  const sockets: string[] = [];
  const newSocketPath = host.host.newSocketPath.bind(host.host);
  host.host.newSocketPath = () => {
    const path = newSocketPath();
    sockets.push(path.slice(-16));
    return path;
  };
  t.after(async () => {
    await host[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
  return { ...host, folder, sockets };
}

/** Returns the launch of a workspace in which every value is a mark, and the digits of the marks by the name of their value. */
function markedLaunch(folder: string) {
  const digits: Record<string, string> = {};
  const mark = (name: string) => {
    digits[name] = randomBytes(8).toString('hex');
    return `${MARK}-${digits[name]}`;
  };
  const cwd = join(folder, mark('workspace id'));
  mkdirSync(cwd);
  const launch: Partial<KernelLaunch> = {
    cwd,
    fileName: `${mark('file name')}.py`,
    env: { VARIABLE: mark('variable') },
    secrets: { SECRET: mark('secret') },
    arguments: ['--parameter', mark('parameter')],
    appOptions: { app_title: mark('title') },
  };
  return { digits, launch, code: `text = "${mark('code')}"` };
}

for (const confinement of ['auto', 'off'] as const) {
  test(`the memory of a kernel contains no data of another workspace, with confinement ${confinement}`, async (t) => {
    const host = await startMarkedHost(t, { confinement });
    await openKernel(host, {}); // after which the kernel host has a spare
    const { digits, launch, code } = markedLaunch(host.folder);
    // Opened in one turn, so that the kernel host reads all these orders at once.
    const marked = [1, 2].map(() => new TestKernel(host, { a: code }, launch));
    const besides = [1, 2].map(() => new TestKernel(host, {}));
    await Promise.all([...marked, ...besides].map(({ ready }) => ready));

    const missing = new TestKernel(host, {}, { cwd: join(host.work, `${MARK}-${'0'.repeat(16)}`) });
    assert.match((await missing.exited).message, /FileNotFoundError/);
    await host.host.convert(
      { direction: 'read', format: 'py', content: `# ${MARK}-${'1'.repeat(16)}` },
      '/files',
    );
    using judge = new SyntaxJudge(host.host, () => Promise.resolve(null));
    assert.equal(await judge.allParse([`a = "${MARK}-${'2'.repeat(16)}"`], 'ws_a'), true);
    const path = `${MARK}-${'3'.repeat(16)}`;
    using engine = host.host.startEngine({
      kind: 'sqlite',
      filesDirectory: launch.cwd!,
      path,
      mode: 'probe',
    });
    await engine.ask({ op: 'open' });

    const own = await search(marked[0]!);
    for (const [name, value] of Object.entries(digits))
      assert.ok(own.includes(value), `the search finds the kernel's own ${name}`);
    const seen = new Set<number>();
    const nameOf = (value: string) => Object.keys(digits).find((name) => digits[name] === value) ?? value;
    const later = [await openKernel(host, {}), await openKernel(host, {}), await openKernel(host, {})];
    for (const kernel of [...besides, ...later]) {
      const found = await search(kernel);
      const nth = host.sockets.indexOf(found[0] ?? '');
      assert.ok(found.length === 1 && nth !== -1, `only its own socket's path, and not ${found.map(nameOf)}`);
      assert.ok(!seen.has(nth), 'every kernel has another one');
      seen.add(nth);
    }
  });
}

test('opening a session with 500 variables of 30 kB costs the kernel host no more than opening a session without variables', async (t) => {
  const orders: number[] = [];
  const startZygote: StartZygote = async (options) => {
    const { zygote, hello } = await ZygoteProcess.start(options);
    const order = zygote.order.bind(zygote);
    zygote.order = (id, fields, listener) => {
      orders.push(JSON.stringify(fields).length);
      order(id, fields, listener);
    };
    return { zygote, hello };
  };
  const host = await startTestHost({ startZygote });
  t.after(() => host[Symbol.asyncDispose]());
  const env = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`V${n}`, 'v'.repeat(30_000)]));
  const large = [1, 2, 3, 4, 5].map(() => new TestKernel(host, {}, { env }));
  const small = new TestKernel(host, {});
  await Promise.all([small, ...large].map(({ ready }) => ready));
  assert.deepEqual(
    orders.map((bytes) => Math.abs(bytes - orders.at(-1)!)),
    [0, 0, 0, 0, 0, 0],
  );
  assert.ok(orders[0]! < 4096, `${orders[0]} bytes`);
  assert.equal((await large[0]!.run({ a: 'import os\nprint(len(os.environ["V499"]))' })).stdout, '30000\n');
});
