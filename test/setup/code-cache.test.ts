// tier: whole, because it performs set-ups and builds
/**
 * V8's compiled code of a bundled program is used when it fits, and a program also starts with damaged or foreign compiled code.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { checkout, importSetup, REPOSITORY } from './checkout.ts';

type Use = 'none' | 'used' | 'rejected';

/** Prints, before the program runs, whether V8 accepted the compiled code. */
const WITNESS = `data:text/javascript,${encodeURIComponent(`
  import vm from 'node:vm';
  vm.Script = class extends vm.Script {
    constructor(source, options) {
      super(source, options);
      const isRejected = this.cachedDataRejected;
      console.log(isRejected === undefined ? 'none' : isRejected ? 'rejected' : 'used');
    }
  };`)}`;

/** Runs a program. Returns whether V8 accepted its compiled code, and the printed text. */
function run(main: string, args: readonly string[] = [], options: readonly string[] = []): [Use, string] {
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...env } = process.env;
  const command = [...options, '--import', WITNESS, main, ...args];
  const [use, ...printed] = execFileSync(process.execPath, command, { encoding: 'utf8', env }).split('\n');
  return [use as Use, printed.join('\n').trim()];
}

/** Returns a bundled program that prints the sum of 1 and 2, and its compiled code. */
async function adder(t: TestContext) {
  const { root, write } = checkout(t);
  write('dist/src/start/main.js', "import { add } from './add.js';\nconsole.log(add(1, 2));\n");
  write('dist/src/start/add.js', 'export const add = (a, b) => a + b;\n');
  const folder = join(root, 'dist/server');
  const build = async () => {
    const [{ bundle }, { writeCodeCaches }] = [await importSetup('bundle'), await importSetup('code-cache')];
    await bundle(root);
    await writeCodeCaches(root);
    return join(folder, readdirSync(folder).find((name) => name.endsWith('.cache'))!);
  };
  return { main: join(folder, 'main.js'), cache: await build(), build, write };
}

test('the compiled code is used', async (t) => {
  const { main, cache } = await adder(t);
  assert.deepEqual(run(main), ['used', '3']);
  assert.equal(statSync(cache).mode & 0o777, statSync(main).mode & 0o777);
});

test('the programs of this installation have compiled code that fits this Node.js', () => {
  const [use, version] = run(join(REPOSITORY, 'dist/server/cli.js'), ['--version']);
  assert.equal(use, 'used');
  assert.match(version, /^\d+\.\d+\.\d+/);
  const files = readdirSync(join(REPOSITORY, 'dist/server')).filter((name) => name.endsWith('.cache'));
  assert.deepEqual(
    files.map((name) => name.replace(/-.*/, '')),
    ['cli', 'main'],
  );
  // Most of the compiled code belongs to functions that are compiled at their first call.
  const compiled = statSync(join(REPOSITORY, 'dist/server', files[1]!)).size;
  assert.ok(compiled > 1_000_000, `${compiled}`);
});

test('the next start uses the compiled code, even if the program sets V8 flags while it runs', async (t) => {
  const { main, build, write } = await adder(t);
  const flags = "import { setFlagsFromString } from 'node:v8';\nsetFlagsFromString('--no-flush-bytecode');\n";
  write('dist/src/start/main.js', `${flags}import { add } from './add.js';\nconsole.log(add(1, 2));\n`);
  await build();
  assert.deepEqual(run(main), ['used', '3']);
});

test('a program starts when its compiled code is missing', async (t) => {
  const { main, cache } = await adder(t);
  rmSync(cache);
  assert.deepEqual(run(main), ['none', '3']);
});

test('a program starts when its compiled code is truncated, empty or damaged, and V8 gets none of it', async (t) => {
  const { main, cache } = await adder(t);
  const whole = readFileSync(cache);
  const damaged = Buffer.from(whole);
  damaged[whole.length >> 1]! ^= 0x55;
  for (const content of [whole.subarray(0, whole.length >> 1), whole.subarray(0, 10), Buffer.of(), damaged]) {
    writeFileSync(cache, content);
    assert.deepEqual(run(main), ['none', '3']);
  }
});

test('a program starts when its compiled code is of another version of V8, or of other flags', async (t) => {
  const { main, cache } = await adder(t);
  assert.deepEqual(run(main, [], ['--stack-size=900']), ['rejected', '3']);
  const code = readFileSync(cache).subarray(32);
  code[4]! ^= 0x55; // the hash of the version
  const digest = createHash('sha256')
    .update(pathToFileURL(cache.replace('.cache', '')).href)
    .update(code)
    .digest();
  writeFileSync(cache, Buffer.concat([digest, code]));
  assert.deepEqual(run(main), ['rejected', '3']);
});

test('a program that was moved is compiled again, because errors would name its old location', async (t) => {
  const { main } = await adder(t);
  const moved = join(dirname(main), '../moved');
  renameSync(dirname(main), moved);
  assert.deepEqual(run(join(moved, 'main.js')), ['none', '3']);
});

test('a changed program gets new compiled code, even if its length is unchanged', async (t) => {
  const { main, cache, build, write } = await adder(t);
  write('dist/src/start/add.js', 'export const add = (a, b) => a * b;\n');
  assert.notEqual(await build(), cache);
  assert.deepEqual(run(main), ['used', '2']);
});
