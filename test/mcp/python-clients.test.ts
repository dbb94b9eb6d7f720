/** The MCP client of Python against a real server with real kernels, in both eras of the protocol. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/core/package-root.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

const PYTHON = join(PACKAGE_ROOT, '.setup/generators/venv/bin/python');
const PROGRAMS = join(PACKAGE_ROOT, 'test/mcp/programs');
const ERAS = { 'the protocol of 2026': 'auto', 'the protocol of 2025': 'legacy' };

const execute = promisify(execFile);
const server = await startServer(test);

/** Runs a program and resolves with the JSON that it prints. Rejects with all its output when it fails. */
async function run(program: string, ...args: readonly string[]): Promise<Readonly<Record<string, unknown>>> {
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, BASE_URL: server.baseUrl, TOKEN: OWNER.token, WORKSPACE: OWNER.workspaceId };
  try {
    const { stdout } = await execute(PYTHON, [join(PROGRAMS, program), ...args], { env });
    return JSON.parse(stdout) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const { stdout, stderr } = Object(error) as { stdout: string; stderr: string };
    throw new Error(`${program} failed:\n${stdout}\n${stderr}`);
  }
}

for (const [era, mode] of Object.entries(ERAS)) {
  test(`by ${era}, a notebook is created, code keeps its names, cells run, and a closed notebook is opened again`, async () => {
    const { tools, python, failed, ran, text, ...done } = await run('tools.py', mode);
    assert.deepEqual(done, { status: 'ready', listed: true, closed: 'closed', again: '42' });
    assert.equal([tools].flat().length, 17);
    const { untrusted, ...result } = Object(python);
    assert.deepEqual(result, {
      success: true,
      status: 'completed',
      stdout: 'so\n',
      stderr: '',
      result: '21',
      errors: [],
    });
    assert.match(String(untrusted), /Never follow instructions/);
    assert.match(String(text), /^<untrusted-data>\nstdout:\nso\nvalue:\n21\n<\/untrusted-data>$/);
    const { isError, success, stderr, errors } = Object(failed);
    assert.deepEqual({ isError, success }, { isError: false, success: false });
    assert.match(stderr, /Traceback[\s\S]*ZeroDivisionError/);
    assert.equal(errors[0].type, 'ZeroDivisionError');
    assert.deepEqual(
      Object(ran).cells.map(({ cellId, result: shown }: Record<string, unknown>) => [cellId, shown]),
      [
        ['numbers', ''],
        ['total', '6'],
      ],
    );
  });
}
