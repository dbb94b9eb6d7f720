// tier: whole, because it performs set-ups and builds
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkout, importSetup, REPOSITORY } from './checkout.ts';

/** Runs the set-up of `root` in its own process. Returns its output without the times. */
function setUp(root: string, path = process.env.PATH): { status: number | null; said: string[] } {
  const program = `
    import { reporting } from ${JSON.stringify(join(REPOSITORY, 'src/setup/console.mjs'))};
    import { setUp } from ${JSON.stringify(join(REPOSITORY, 'src/setup/setup.mjs'))};
    await reporting(() => setUp(${JSON.stringify(root)}));`;
  const { TROUPE_PYTHON: _, ...env } = process.env;
  const child = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { ...env, PATH: path },
  });
  const said = child.stderr.split('\n').filter((line) => line !== '');
  return { status: child.status, said: said.map((line) => line.replace(/[\d.]+ s$/, '<time>')) };
}

test('set-up performs and prints the missing steps, and prints nothing when nothing is missing', (t) => {
  const { root } = checkout(t);
  const first = setUp(root);
  assert.deepEqual(
    [first.status, first.said.toSorted()],
    [
      0,
      [
        'troupe: building …',
        'troupe: building: done in <time>',
        'troupe: creating the Python environment …',
        'troupe: creating the Python environment: done in <time>',
        'troupe: installing the npm packages …',
        'troupe: installing the npm packages: done in <time>',
        'troupe: preparing uWebSockets.js …',
        'troupe: preparing uWebSockets.js: done in <time>',
      ],
    ],
  );
  assert.deepEqual(setUp(root), { status: 0, said: [] });
});

test('a changed source is compiled again, and the output of a deleted one is removed', (t) => {
  const { root, write } = checkout(t);
  setUp(root);
  write('src/one.ts', 'export const one: number = 11;\n');
  rmSync(join(root, 'src/two.ts'));
  assert.deepEqual(setUp(root), {
    status: 0,
    said: ['troupe: building …', 'troupe: building: done in <time>'],
  });
  assert.deepEqual(readdirSync(join(root, 'dist/src')).toSorted(), ['one.js', 'one.js.map']);
  assert.match(readFileSync(join(root, 'dist/src/one.js'), 'utf8'), /one = 11/);
});

test('a failed build prints the reason, exits with 1, and is tried again', (t) => {
  const { root, write } = checkout(t);
  write('src/one.ts', 'export const one: number = "x";\n');
  const { status, said } = setUp(root);
  assert.equal(status, 1);
  assert.deepEqual(said.slice(-2), [
    'troupe: The build failed (exit code 2).',
    "src/one.ts(1,14): error TS2322: Type 'string' is not assignable to type 'number'.",
  ]);
  write('src/one.ts', 'export const one: number = 1;\n');
  assert.equal(setUp(root).status, 0);
});

test('changed requirements make the Python environment pending, unless the operator provides another Python', async (t) => {
  const { root, write } = checkout(t);
  const { pending } = await importSetup('python-environment');
  setUp(root);
  assert.equal(pending(root), undefined);
  write('src/confined/python/requirements.txt', 'py-yaml-x==6.0.4\n');
  assert.equal(pending(root), 'its requirements have changed');
  write('settings/troupe.config.json', '{"python": "/usr/bin/python3"}');
  assert.equal(pending(root, join(root, 'settings')), undefined);
});

test('an environment counts as installed only if every package has its pinned version', async (t) => {
  const { root, write } = checkout(t);
  const { isInstalled } = await importSetup('python-environment');
  assert.equal(isInstalled(root), true);
  write('src/confined/python/requirements.txt', 'Py.Yaml-X==6.0.3\nother==1.0\n');
  assert.equal(isInstalled(root), false);
  rmSync(join(root, '.venv'), { recursive: true });
  assert.equal(isInstalled(root), false);
});

test('packages count as installed only if npm recorded every package of the lock file for this platform', async (t) => {
  const { root, write } = checkout(t);
  const { isInstalled } = await importSetup('node-packages');
  assert.equal(isInstalled(root), true);
  write('node_modules/.package-lock.json', '{"packages":{"node_modules/left":{"version":"1.0.1"}}}');
  assert.equal(isInstalled(root), false);
  rmSync(join(root, 'node_modules/.package-lock.json'));
  assert.equal(isInstalled(root), false);
});

test('set-up passes over folders of compiled Python files, which a kernel of root makes unreadable', async (t) => {
  const { root, write } = checkout(t);
  write('src/confined/one.py', '');
  write('src/confined/__pycache__/two.py', '');
  const { filesBelow } = await importSetup('stamps');
  assert.deepEqual(filesBelow(root, 'src/confined', '.py'), ['src/confined/one.py']);
});

test('two set-ups at once take turns, even if the first is killed', async (t) => {
  const { root } = checkout(t);
  const program = (name: string) => `
    import { holdingLock } from ${JSON.stringify(join(REPOSITORY, 'src/setup/lock.mjs'))};
    await holdingLock(${JSON.stringify(root)}, async () => {
      console.log('${name} in');
      await new Promise((done) => process.stdin.once('data', done));
      console.log('${name} out');
    });
    process.exit(0);`;
  const launch = (name: string) => spawn(process.execPath, ['--input-type=module', '-e', program(name)]);
  const first = launch('first');
  t.after(() => first.kill('SIGKILL'));
  assert.equal(String((await once(first.stdout, 'data'))[0]), 'first in\n');
  const second = launch('second');
  t.after(() => second.kill('SIGKILL'));
  assert.equal(
    String((await once(second.stderr, 'data'))[0]),
    'troupe: waiting for another set-up of this installation\n',
  );
  first.kill('SIGKILL');
  assert.equal(String((await once(second.stdout, 'data'))[0]), 'second in\n');
  second.stdin.write('\n');
  assert.deepEqual(await once(second, 'exit'), [0, null]);
});

test('a signal to set-up ends the programs it runs', async (t) => {
  const { root } = checkout(t);
  const program = `
    import { endingWithUs, run } from ${JSON.stringify(join(REPOSITORY, 'src/setup/children.mjs'))};
    await endingWithUs(() => run('sh', ['-c', 'echo $$ > pid; sleep 600 & wait'], { cwd: ${JSON.stringify(root)}, failure: 'x' }));`;
  const parent = spawn(process.execPath, ['--input-type=module', '-e', program]);
  t.after(() => parent.kill('SIGKILL'));
  const pidFile = join(root, 'pid');
  while (!existsSync(pidFile) || !readFileSync(pidFile, 'utf8').endsWith('\n'))
    await new Promise(setImmediate);
  parent.kill('SIGTERM');
  assert.deepEqual(await once(parent, 'exit'), [143, null]);
  const pid = Number(readFileSync(pidFile, 'utf8'));
  while (isRunning(pid)) await new Promise(setImmediate);
});

/** Returns whether the process exists and has not ended. A zombie has ended. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false; // the process does not exist
  }
}

test('when python3 or its venv module is missing, one line names the package to install', (t) => {
  const { root, write } = checkout(t);
  rmSync(join(root, '.venv'), { recursive: true });
  const debian = 'On Debian or Ubuntu: apt install python3 python3-venv';
  const lastLine = () => setUp(root, join(root, 'bin')).said.at(-1);
  assert.equal(lastLine(), `troupe: python3 is missing. ${debian}`);
  write('bin/python3', '#!/bin/sh\ncase "$2" in *ensurepip*) exit 1 ;; *) echo 3.11 ;; esac\n');
  chmodSync(join(root, 'bin/python3'), 0o755);
  assert.equal(lastLine(), `troupe: python3 has no venv module. ${debian}`);
  write('bin/python3', '#!/bin/sh\necho 3.9\n');
  assert.equal(lastLine(), `troupe: Python 3.11 or later is needed; python3 here is 3.9. ${debian}`);
});

test('when the binary of the store does not load, one line gives the reason', (t) => {
  const { root, write } = checkout(t);
  rmSync(join(root, 'node_modules/lmdb'));
  write('node_modules/lmdb/package.json', '{"name":"lmdb","type":"module","exports":"./index.js"}');
  write('node_modules/lmdb/index.js', "throw new Error('GLIBC_2.99 not found');");
  const { status, said } = setUp(root);
  const place = `Node.js ${process.version} on ${process.platform} ${process.arch}`;
  assert.deepEqual(
    [status, said.at(-1)],
    [1, `troupe: The binary of lmdb does not load with ${place}: GLIBC_2.99 not found`],
  );
});

test('an old Node.js is rejected with one line that names the required version', async () => {
  const { requireNode } = await importSetup('setup');
  assert.throws(() => requireNode('18.19.0'), {
    message: 'Node.js 20.12 or later is needed; this is 18.19.0.',
  });
  assert.throws(() => requireNode('20.11.1'), {
    message: 'Node.js 20.12 or later is needed; this is 20.11.1.',
  });
  assert.doesNotThrow(() => requireNode('20.12.0'));
  assert.doesNotThrow(() => requireNode('24.0.0'));
});

test('the error of a native binary is reduced to one line', async () => {
  const { unloadable } = await importSetup('node-packages');
  const text =
    "node:internal/x\nError: /lib/libc.so.6: version `GLIBC_2.38' not found (required by x.node)\n    at y";
  assert.ok(
    unloadable('lmdb', text).startsWith(
      `The binary of lmdb does not load with Node.js ${process.version} on ${process.platform} ${process.arch}: ` +
        "/lib/libc.so.6: version `GLIBC_2.38' not found (required by x.node). ",
    ),
  );
});

test('the error for a system or a Node.js without a uWebSockets.js binary names the way out', async () => {
  const { unloadable } = await importSetup('node-packages');
  const general = 'Error: This version of uWS.js supports only Node.js versions 16, 18, 20\n\n';
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime: string } };
  assert.match(
    unloadable(
      'uWebSockets.js',
      `${general}Error: /lib/libc.so.6: version \`GLIBC_2.38' not found (required by x.node)`,
    ),
    new RegExp(
      `: /lib/libc.so.6: .*It needs glibc 2\\.38, and this system has ${header.glibcVersionRuntime}: use a newer system`,
    ),
  );
  assert.match(
    unloadable('uWebSockets.js', `${general}Error: Cannot find module './uws_linux_x64_131.node'`),
    /Cannot find module.*Use Node\.js 20, 22 or 24.*TROUPE_UWEBSOCKETS/,
  );
});

test('npm ci accepts the lock file on every platform, because it lists the optional packages of all', async () => {
  const { missingEntries } = await importSetup('complete-lock');
  const lock = JSON.parse(readFileSync(join(REPOSITORY, 'package-lock.json'), 'utf8'));
  assert.deepEqual(missingEntries(lock), {}, 'npm run lock adds them');
});
