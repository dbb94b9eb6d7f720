import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { LogOutput } from '#src/base/log/log-output.ts';
import { eventually } from '#test/support/processes.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const MODULE = fileURLToPath(new URL('../../src/base/log/log-output.js', import.meta.url));
const LINE = `${'x'.repeat(1023)}\n`;

/** Starts a process whose standard output is a pipe. `body` is its code and writes to `output`. */
function withOutput(body: string) {
  const script = `import { LogOutput } from ${JSON.stringify(MODULE)}; const output = new LogOutput(1); ${body}`;
  return spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
}

test('lines arrive whole and in order, even when some are flushed and some written in the background', async (t) => {
  const path = join(temporaryDirectory(t), 'log');
  const fd = openSync(path, 'w');
  const output = new LogOutput(fd);
  for (let n = 0; n < 5; n++) output.write(`${n}\n`);
  output.flushSync();
  // The first line is written by another thread, which may not have begun yet.
  const lines = () => readFileSync(path, 'utf8').split('\n').sort();
  await eventually('every line is in the file', () => lines().length >= 6);
  closeSync(fd);
  assert.deepEqual(lines(), ['', '0', '1', '2', '3', '4']);
});

test('an orderly end waits until every line is written, in order', async (t) => {
  const path = join(temporaryDirectory(t), 'log');
  const fd = openSync(path, 'w');
  const output = new LogOutput(fd);
  for (let n = 0; n < 100; n++) output.write(`${n}\n`);
  await output.written();
  closeSync(fd);
  assert.deepEqual(readFileSync(path, 'utf8').trimEnd().split('\n').map(Number), [...Array(100).keys()]);
});

test('lines of several processes that share a pipe arrive whole', async () => {
  const script = `import { LogOutput, SHARED_PIPE_BYTES } from ${JSON.stringify(MODULE)};
    const output = new LogOutput(1, SHARED_PIPE_BYTES);
    for (let n = 0; n < 8000; n++) output.write(process.argv[1].repeat(1 + (n * 37) % 900) + '\\n');`;
  const all = 'for name in a b c; do "$0" --input-type=module -e "$1" $name & done; wait';
  const { stdout } = spawn('/bin/sh', ['-c', all, process.execPath, script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = (await text(stdout)).split('\n').filter((line) => line !== '');
  assert.equal(lines.length, 24_000);
  assert.deepEqual(
    lines.filter((line) => !/^(a+|b+|c+)$/.test(line)),
    [],
  );
});

test('everything that was written before the process exits arrives', async () => {
  const child = withOutput(
    `process.on('exit', () => output.flushSync()); for (let n = 0; n < 20000; n++) output.write(n + '\\n');`,
  );
  const all = await text(child.stdout);
  assert.equal(all, Array.from({ length: 20_000 }, (_, n) => `${n}\n`).join(''));
});

test('without a reader a flush returns, and the process ends', async () => {
  const child = withOutput(`process.stdin.once('data', () => {
    output.write('a\\n'); output.write('b\\n'); output.flushSync(); process.exit(7);
  });`);
  child.stdout.destroy();
  await once(child.stdout, 'close');
  child.stdin.write('go');
  assert.deepEqual(await once(child, 'exit'), [7, null]);
});

test('when a reader does not read, lines are discarded, and their number is logged when it reads again', async () => {
  const child = withOutput(`
    for (let n = 0; n < 20 * 1024; n++) output.write(${JSON.stringify(LINE)});
    output.flushSync();
    process.stderr; process.stdin.once('data', () => { output.write('the end\\n'); process.stdin.destroy(); });
  `);
  child.stdin.write('go');
  let lost = 0;
  let kept = 0;
  let last = '';
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('x')) kept++;
    else if (line.startsWith('{')) lost += (JSON.parse(line) as { lost: number }).lost;
    last = line;
  }
  assert.equal(last, 'the end');
  assert.equal(kept + lost, 20 * 1024);
  assert.ok(lost > 10 * 1024, `${lost} of 20 MiB were lost`);
});
