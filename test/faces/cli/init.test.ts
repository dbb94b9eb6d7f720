/**
 * The first programs that `troupe init` prints. The programs for the client packages run in the
 * tests of those packages.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import test from 'node:test';
import { promisify } from 'node:util';
import { SNIPPETS } from '#src/faces/cli/snippets.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const shell = new Shell(test, server);

test('each generated program names the server and the workspace, and contains no token', async () => {
  for (const kind of Object.keys(SNIPPETS)) {
    const { out, err, exitCode } = await shell.troupe(['init', kind]);
    assert.equal(exitCode, 0, err);
    assert.ok(out.includes(server.baseUrl) && out.includes(OWNER.workspaceId), out);
    assert.ok(!(out + err).includes(OWNER.token), 'the token is in it');
    assert.match(err, /troupe tokens create/);
  }
});

test('the program for curl runs a notebook in bash', async () => {
  const text = await shell.text(['init', 'curl']);
  const { stdout } = await promisify(execFile)('bash', ['-euc', text], {
    env: { PATH: process.env.PATH, SERVICE_ACCESS_TOKEN: OWNER.token },
  });
  assert.match(stdout, /"status":"completed"/);
  assert.match(stdout, /\b60\b/);
  const { items } = await server.client.notebookSessions.list({ status: 'open' });
  assert.deepEqual(items, [], 'the session is closed');
});

test('the settings for MCP start a server that has tools', async () => {
  const { mcpServers } = JSON.parse(await shell.text(['init', 'mcp']));
  const { command, args, env } = mcpServers.troupe;
  assert.equal(command, 'troupe');
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  };
  const messages = [
    { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 2, method: 'tools/list', params: {} },
  ];
  const { out, err } = await new Shell(test).troupe(args, {
    env: { ...env, SERVICE_ACCESS_TOKEN: OWNER.token },
    input: messages.map((message) => `${JSON.stringify(message)}\n`).join(''),
  });
  assert.match(out, /"name":"run_python"/, err);
});

test('a workspace name with special characters of the shell is one word in the program for curl', async () => {
  const { text } = SNIPPETS.curl({ baseUrl: 'http://127.0.0.1:1', workspaceId: "a'$(id)b" });
  const [line] = text.split('\n').filter((one) => one.startsWith('export'));
  const script = `${line}; printf %s "$SERVICE_WORKSPACE_ID"`;
  assert.equal((await promisify(execFile)('bash', ['-c', script])).stdout, "a'$(id)b");
});

test('an unknown kind of program is refused, and the error lists the known kinds', async () => {
  const { exitCode, err } = await shell.troupe(['init', 'cobol']);
  assert.notEqual(exitCode, 0);
  assert.match(err, /python, typescript, mcp, curl/);
});
