/**
 * The command line on a real terminal: a pseudo-terminal of the system, with every byte that was
 * sent to it.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startServer } from '#test/support/server-fixture.ts';
import { STEERING } from '#test/support/steering.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const MAIN = fileURLToPath(new URL('../../../src/faces/cli/main.js', import.meta.url));
/** Runs a command on a terminal with this many columns, and writes the bytes that the terminal got to standard output. */
const ON_A_TERMINAL = `
import fcntl, os, pty, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
while True:
    try:
        data = os.read(terminal, 65536)
    except OSError:
        break
    if not data:
        break
    os.write(1, data)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

const server = await startServer(test);
const shell = new Shell(test, server);

async function onTerminal(columns: number, ...args: readonly string[]): Promise<string> {
  const { PATH = '', HOME = '' } = process.env;
  const { stdout } = await promisify(execFile)(
    'python3',
    ['-c', ON_A_TERMINAL, String(columns), process.execPath, MAIN, ...args],
    { cwd: shell.cwd, env: { PATH, HOME, TERM: 'xterm-256color', ...shell.env }, timeout: 60_000 },
  );
  return stdout.replaceAll('\r\n', '\n'); // the terminal itself adds the carriage returns
}

const HOSTILE = String.raw`import sys
print("\x1b]0;owned\x07\x1b]52;c;cm0=\x07\x1b[2J\x1b[H\x1b[31mred\x1b[0m \u009b2J\u202etext")
for n in range(3):
    sys.stderr.write(f"\r step {n}")
    sys.stderr.flush()
"\x1b[2Jvalue"`;

for (const columns of [80, 1, 0]) {
  test(`a hostile cell cannot steer a terminal of ${columns} columns`, async () => {
    writeFileSync(join(shell.cwd, 'hostile.py'), marimoFile({ hostile: HOSTILE }));
    const sent = await onTerminal(columns, 'run', 'hostile.py', '--rm');
    const ours = sent.replaceAll('\r\u001b[2K', '<again>');
    assert.ok(ours.includes('\u001b[31mred\u001b[0m text'), ours);
    assert.match(ours, /<again> step 0<again> step 1<again> step 2/);
    assert.match(ours, /completed/);
    assert.doesNotMatch(ours, STEERING);
  });
}

test('every command removes control characters from the names that it shows', async () => {
  const name = 'a\u001b]0;owned\u0007\u009b2J\u202eb';
  const { id } = await server.client.notebooks.create({
    serialization: { cells: [{ cell_id: 'c', code: `# ${name}`, options: { name } }] },
    variables: {},
  });
  for (const args of [
    ['notebooks', 'show', id],
    ['notebooks', 'export', id],
    ['notebooks', 'show', id, '--json'],
  ]) {
    const sent = await onTerminal(80, ...args);
    assert.match(sent, /# a/);
    assert.doesNotMatch(sent, STEERING, args.join(' '));
  }
});
