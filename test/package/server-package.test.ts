// tier: whole, because it packs, installs and starts packages
// runs alone: it starts many processes, which keep both processors busy
/** The package of `npm pack`, installed on its own: it sets up its environment, serves, and does the first run of the README. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { VERSION } from '#src/base/install/version.ts';
import { pythonOfTests } from '#test/support/server-fixture.ts';

const execute = promisify(execFile);

/** The parts of the output of `npm pack --json` that the test reads. */
interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

test('npm pack makes a package that installs, sets itself up, serves, and completes the first run', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-package-'));
  t.after(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const [home, prefix, work] = ['home', 'prefix', 'work'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const made of [home, prefix, work]) mkdirSync(made);

  const [packed] = await pack(folder);
  await t.test(
    'the package contains everything that a server and the command line need, and nothing else',
    () => {
      assert.equal(packed.filename, `troupe-${VERSION}.tgz`);
      const paths = packed.files.map(({ path }) => path);
      const others = paths.filter(
        (path) =>
          !/^(deploy|dist\/console|dist\/docs|dist\/server|src\/confined\/notebook_modules|src\/confined\/python|src\/setup)\//.test(
            path,
          ),
      );
      assert.deepEqual(others.toSorted(), ['LICENSE', 'README.md', 'dist/commit.txt', 'package.json']);
      assert.deepEqual(
        paths.filter((path) => /\.tsx?$|\.cache$|\.pyc$|stamp$|test/.test(path)),
        [],
      );
      // The package contains every module that its modules of set-up import unconditionally.
      for (const path of paths.filter((name) => /^src\/setup\/.*\.mjs$/.test(name)))
        for (const [, name] of readFileSync(join(PACKAGE_ROOT, path), 'utf8').matchAll(
          / from '\.\/([\w-]+\.mjs)'/g,
        ))
          assert.ok(paths.includes(`src/setup/${name}`), `${path} imports ${name}`);
    },
  );

  // The addresses of the registries and the caches of downloads are those of this machine;
  // everything else of the user is new.
  const env = {
    ...registryAccess(),
    HOME: home,
    PATH: [join(prefix, 'bin'), dirname(process.execPath), '/usr/local/bin', '/usr/bin', '/bin'].join(
      delimiter,
    ),
    npm_config_prefix: prefix,
    npm_config_cache: process.env.npm_config_cache ?? join(homedir(), '.npm'),
    npm_config_prefer_offline: 'true',
    PIP_CACHE_DIR: process.env.PIP_CACHE_DIR ?? join(homedir(), '.cache', 'pip'),
    TROUPE_PORT: '0',
    ...pythonOfTests(),
  };
  const options = { cwd: work, env };
  await execute('npm', ['install', '-g', join(folder, packed.filename)], options);
  const installed = join(prefix, 'lib/node_modules/troupe');
  const missing = ['typescript', 'esbuild', 'preact', 'playwright-core'].filter(
    (name) => !existsSync(join(installed, 'node_modules', name)),
  );
  assert.deepEqual(missing, ['typescript', 'esbuild', 'preact', 'playwright-core'], 'no tool of developers');
  const commit = (await execute('git', ['-C', PACKAGE_ROOT, 'rev-parse', 'HEAD'])).stdout.slice(0, 12);
  const { stdout: version } = await execute('troupe', ['--version'], options);
  assert.equal(version, `${VERSION} (${commit})\n`);

  const server = spawn('troupe', ['serve'], { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => server.kill('SIGKILL'));
  const ended = once(server, 'close');
  const url = await readyUrl(server);
  const [, block = ''] = /^## First run$.*?^```sh\n(.*?)^```$/ms.exec(readme()) ?? [];
  const { stdout } = await execute('bash', ['-euc', block.replace('http://127.0.0.1:8787', url)], options);
  assert.match(stdout, /adding 4 numbers/);
  assert.match(stdout, /"status":"completed"/);
  assert.match(stdout, /\b100\b/, 'the answer is ten times the sum');
  const page = await fetch(`${url}/console`);
  assert.equal(page.status, 200, 'the console is in the package');
  server.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);

  await t.test('set-up of a complete installation reports that, and does nothing', async () => {
    const { stderr } = await execute('troupe', ['setup'], options);
    assert.equal(stderr, 'troupe: everything is set up\n');
  });
});

/**
 * Returns the variables of this process without those of Troupe and of the npm that runs the tests.
 */
function registryAccess(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(npm_|TROUPE_|SERVICE_|NODE_OPTIONS$|NODE_TEST)/.test(name),
    ),
  );
}

const readme = () => readFileSync(join(PACKAGE_ROOT, 'README.md'), 'utf8');

/** Packs this checkout into `folder`. */
async function pack(folder: string): Promise<[Packed]> {
  const { stdout } = await execute('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: PACKAGE_ROOT,
    maxBuffer: 2 ** 24,
  });
  return JSON.parse(stdout.slice(stdout.indexOf('[\n'))) as [Packed];
}

/** Resolves with the address of a server when it is ready. Rejects with its output when it ends first. */
function readyUrl(server: ReturnType<typeof spawn>): Promise<string> {
  const said: string[] = [];
  return new Promise((resolve, reject) => {
    createInterface({ input: server.stdout! }).on('line', (line) => {
      said.push(line);
      const [, url] = /"url":"(http:[^"]+)".*"msg":"ready"/.exec(line) ?? [];
      if (url !== undefined) resolve(url);
    });
    createInterface({ input: server.stderr! }).on('line', (line) => said.push(line));
    server.once('exit', () => reject(new Error(`the server ended:\n${said.join('\n')}`)));
  });
}
