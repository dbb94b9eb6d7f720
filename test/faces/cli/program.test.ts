import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { isObeyed } from '#src/base/config/allowed-files.ts';
import { settingsTable } from '#src/base/config/report.ts';
import { resolveAccess } from '#src/faces/cli/access.ts';
import { longSentencesOf } from '#test/support/sentences.ts';
import { troupe } from './captured-terminal.ts';

/** Returns a working directory with a data directory in which a server was started once. */
function workingDirectory(t: TestContext): string {
  const cwd = mkdtempSync(join(tmpdir(), 'troupe-cli-'));
  t.after(() => rmSync(cwd, { recursive: true }));
  mkdirSync(join(cwd, '.troupe'));
  writeFileSync(
    join(cwd, '.troupe', 'bootstrap.json'),
    '{"workspaceId":"ws_1","accessToken":"trp_on-this-machine"}',
  );
  return cwd;
}

function accessOf(cwd: string, env: Record<string, string>, workspaceId?: string) {
  const { baseUrl, accessToken, workspaceId: workspace } = resolveAccess({ env, cwd, workspaceId });
  return [baseUrl, accessToken.reveal(), workspace];
}

test("on the server's machine no setting is needed", (t) => {
  const cwd = workingDirectory(t);
  assert.deepEqual(accessOf(cwd, {}), ['http://127.0.0.1:8787', 'trp_on-this-machine', 'ws_1']);
  const other = { TROUPE_HOST: '0.0.0.0', TROUPE_PORT: '9000' };
  assert.deepEqual(accessOf(cwd, other), ['http://127.0.0.1:9000', 'trp_on-this-machine', 'ws_1']);
  assert.deepEqual(accessOf(cwd, { TROUPE_HOST: '::' })[0], 'http://[::1]:8787');
});

test("credentials from the server's own settings are found", (t) => {
  const cwd = workingDirectory(t);
  const env = { TROUPE_BOOTSTRAP_TOKEN: 'chosen-by-the-operator', TROUPE_BOOTSTRAP_WORKSPACE: 'team' };
  assert.deepEqual(accessOf(cwd, env).slice(1), ['chosen-by-the-operator', 'team']);
});

test('the SERVICE_ variables override the local credentials, and --workspace overrides them', (t) => {
  const cwd = workingDirectory(t);
  const env = {
    SERVICE_BASE_URL: 'http://localhost:1/',
    SERVICE_ACCESS_TOKEN: 'mine',
    SERVICE_WORKSPACE_ID: 'w',
  };
  assert.deepEqual(accessOf(cwd, env), ['http://localhost:1', 'mine', 'w']);
  assert.deepEqual(accessOf(cwd, env, 'other'), ['http://localhost:1', 'mine', 'other']);
});

test('the token of this machine is never sent to another machine', (t) => {
  const cwd = workingDirectory(t);
  for (const url of ['https://troupe.example', 'http://127.0.0.1.example', 'http://10.0.0.1:8787']) {
    assert.throws(() => resolveAccess({ env: { SERVICE_BASE_URL: url }, cwd }), {
      name: 'CommandFailure',
      exitCode: 4,
      message: `You are not signed in to ${url}. Run: troupe login. In scripts, set SERVICE_ACCESS_TOKEN.`,
    });
  }
});

test("the token of this machine is not sent to another program that listens on the server's port at another address", (t) => {
  const cwd = workingDirectory(t);
  const at = (url: string, host = '127.0.0.1') =>
    accessOf(cwd, { SERVICE_BASE_URL: url, TROUPE_HOST: host, TROUPE_PORT: '9000' }).slice(0, 2);
  const token = 'trp_on-this-machine';
  assert.deepEqual(at('http://localhost:9000'), ['http://127.0.0.1:9000', token]);
  assert.deepEqual(at('http://localhost:9000/base/'), ['http://127.0.0.1:9000/base', token]);
  assert.deepEqual(at('http://localhost:9000', '::'), ['http://[::1]:9000', token]);
  assert.deepEqual(at('https://localhost:9000'), ['https://localhost:9000', token]);
  assert.deepEqual(at('http://127.0.0.1:9001'), ['http://127.0.0.1:9001', token]);
  assert.deepEqual(at('http://127.0.0.5:9000', '0.0.0.0'), ['http://127.0.0.5:9000', token]);
  assert.throws(() => at('http://[::1]:9000'), /SERVICE_ACCESS_TOKEN/);
  assert.throws(() => at('http://[::1]:9000', '0.0.0.0'), /SERVICE_ACCESS_TOKEN/);
  assert.throws(() => at('http://127.0.0.5:9000'), /SERVICE_ACCESS_TOKEN/);
});

test('an unknown word is a usage error with a suggestion', async () => {
  for (const args of [['tokn'], ['token', 'lst'], ['token', 'list', '--jsn'], ['member', 'create', 'ada']]) {
    const { exitCode, out, err } = await troupe(args);
    assert.deepEqual([exitCode, out], [2, ''], args.join(' '));
    assert.match(err, /^error: /);
  }
  assert.match((await troupe(['tokn'])).err, /Did you mean token\?/);
  assert.equal((await troupe(['completion', 'csh'])).exitCode, 2);
});

test('with --json every mistake in the command line is JSON, except after --, where nothing is read as an option', async () => {
  const messageOf = async (...args: string[]) => {
    const { exitCode, out, err } = await troupe(args);
    assert.deepEqual([exitCode, out], [2, ''], args.join(' '));
    return JSON.parse(err).error.message;
  };
  assert.match(await messageOf('tokken', 'list', '--json'), /^unknown command 'tokken'/);
  assert.equal(await messageOf('run', 'a.py', '--bogus', '--json'), "unknown option '--bogus'");
  assert.match(await messageOf('--json', 'files', 'put'), /^missing required argument/);
  assert.equal(await messageOf('--json'), 'Name a command: troupe help lists them.');
  const { err } = await troupe(['run', 'a.py', 'b.py', '--', '--json']);
  assert.match(err, /^troupe: /);
});

test("the version is the package's version, followed by the commit if it is known", async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const { exitCode, out, err } = await troupe(['--version']);
  assert.deepEqual([exitCode, err], [0, '']);
  assert.match(out, new RegExp(`^${version.replaceAll('.', '\\.')}( \\([0-9a-f]{12}\\))?\n$`));
});

test('a usage error points to the help', async () => {
  const { exitCode, err } = await troupe(['sessions', 'vanish']);
  assert.equal(exitCode, 2);
  assert.match(err, /unknown command 'vanish'\n {2}Add --help to see commands and options\./);
});

test('the help lists the commands and the exit codes', async () => {
  const { exitCode, out, err } = await troupe(['--help']);
  assert.deepEqual([exitCode, err], [0, '']);
  for (const word of ['serve', 'config', 'workspace', 'member', 'token', 'completion', 'Exit codes:']) {
    assert.ok(out.includes(word), word);
  }
});

test('no sentence of the help has more than 30 words', async () => {
  const long: string[] = [];
  const pending: string[][] = [[]];
  for (const command of pending) {
    const { out } = await troupe([...command, '--help']);
    const [, commands = ''] = /^Commands:\n((?: .*\n)+)/m.exec(out) ?? [];
    const names = [...commands.matchAll(/^ {2}([a-z][\w-]*)/gm)].map(([, name]) => name!);
    if (command.at(-1) !== 'help') pending.push(...names.map((name) => [...command, name]));
    long.push(...helpTextsOf(out).flatMap(longSentencesOf));
  }
  assert.ok(pending.length > 100);
  assert.deepEqual([...new Set(long)], []);
});

/** Returns the paragraphs of a help, and the description of each command and option, without usage and examples. */
function helpTextsOf(help: string): string[] {
  const entries = help
    .replace(/^Usage:.*$|^Examples:\n(?: .*\n?)+/gm, '')
    .split(/\n(?:\n|(?= {2,4}\S)|(?=\S.*:$))/);
  return entries.map((entry) => entry.trim().replace(/^\S.*? {2,}/, ''));
}

test('no option accepts a secret', async () => {
  for (const group of [[], ['token', 'create'], ['member', 'create'], ['workspace', 'create'], ['config']]) {
    const { out } = await troupe([...group, '--help']);
    assert.doesNotMatch(out, /--(access-)?(token|password|secret|api-key|key)\b/);
  }
});

test('a silent server leads to a special exit code', async () => {
  const env = {
    SERVICE_BASE_URL: 'http://127.0.0.1:1',
    SERVICE_ACCESS_TOKEN: 'x',
    SERVICE_WORKSPACE_ID: 'w',
  };
  const { exitCode, out, err } = await troupe(['token', 'list'], { env });
  assert.deepEqual([exitCode, out], [3, '']);
  assert.match(err, /^troupe: No answer from http:\/\/127\.0\.0\.1:1\//);
});

test('a malformed token or address counts as a wrong setting, and its value is not shown', async () => {
  const right = {
    SERVICE_BASE_URL: 'http://127.0.0.1:1',
    SERVICE_ACCESS_TOKEN: 'x',
    SERVICE_WORKSPACE_ID: 'w',
  };
  const wrong = [
    { SERVICE_ACCESS_TOKEN: 'secret\nsecret' },
    { SERVICE_ACCESS_TOKEN: 'secret”' },
    { SERVICE_BASE_URL: 'http://ada:secret@127.0.0.1:1' },
    { SERVICE_BASE_URL: 'http://127.0.0.1:1/?key=secret' },
    { SERVICE_BASE_URL: '127.0.0.1:1' },
    { SERVICE_BASE_URL: 'localhost:1' },
  ];
  for (const setting of wrong) {
    const { exitCode, out, err } = await troupe(['notebooks', 'list'], { env: { ...right, ...setting } });
    assert.deepEqual([exitCode, out], [4, ''], JSON.stringify(setting));
    assert.match(err, new RegExp(Object.keys(setting)[0] ?? ''));
    assert.doesNotMatch(err, /secret/);
  }
  const padded = await troupe(['notebooks', 'list'], { env: { ...right, SERVICE_ACCESS_TOKEN: 'x\r\n' } });
  assert.equal(padded.exitCode, 3, 'white space around a token is left out');
});

test('config shows values and their sources, and hides the secrets', async (t) => {
  const cwd = workingDirectory(t);
  const env = { TROUPE_PORT: '9000', OPENAI_API_KEY: 'sk-0123456789' };
  const { exitCode, out } = await troupe(['config'], { env, cwd });
  assert.equal(exitCode, 0);
  const lines = out.split('\n').map((line) => line.replace(/ +/g, ' '));
  assert.equal(lines[0], 'SETTING VALUE FROM');
  assert.ok(lines.includes('TROUPE_PORT 9000 environment'));
  assert.ok(lines.includes('TROUPE_HEARTBEAT_S 2.5 s default'));
  assert.ok(lines.includes('OPENAI_API_KEY [secret] environment'));
  assert.ok(lines.includes('ANTHROPIC_API_KEY - default'));
  const json = JSON.parse((await troupe(['config', '--json'], { env, cwd })).out);
  assert.deepEqual(json[1], {
    name: 'port',
    env: 'TROUPE_PORT',
    value: 9000,
    unit: null,
    source: 'environment',
    secret: false,
  });
});

test('config can print the table of the documentation', async () => {
  assert.equal((await troupe(['config', '--markdown'])).out, settingsTable());
});

test('the error for a wrong setting names the setting, and has a separate exit code', async () => {
  assert.deepEqual(await troupe(['config'], { env: { TROUPE_PROT: '1' } }), {
    exitCode: 4,
    out: '',
    err: 'troupe: TROUPE_PROT is not a setting. Did you mean TROUPE_PORT?\n',
  });
});

test('bash completes commands, their arguments and their options', async (t) => {
  const { out } = await troupe(['completion', 'bash']);
  const offered = (words: readonly string[]) => {
    const script = `${out}
      COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
      _troupe; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8' });
    assert.equal(stderr, '');
    return stdout.trim().split('\n');
  };
  if (spawnSync('bash', ['--version']).error !== undefined) return t.skip('there is no bash');
  assert.deepEqual(offered(['troupe', 'tok']), ['token']);
  assert.deepEqual(offered(['troupe', 'token', '']), [
    'create',
    'list',
    'revoke',
    '--json',
    '--workspace',
    '--help',
  ]);
  assert.deepEqual(offered(['troupe', 'completion', 'z']), ['zsh']);
  assert.deepEqual(offered(['troupe', 'token', 'create', 'ci', '--sc']), ['--scope']);
});

/** Shells that check the syntax of their script; fish can also print its completions without a terminal. */
const SHELLS = [
  { shell: 'zsh', args: (script: string) => ['-n', script], says: '' },
  {
    shell: 'fish',
    args: (script: string) => ['-c', 'source $argv[1]; complete -C "troupe token re"', script],
    says: 'revoke\n',
  },
];
for (const { shell, args, says } of SHELLS) {
  const isThere = spawnSync(shell, ['--version']).error === undefined;
  const skip = !isThere && process.env.CI !== 'true' ? `there is no ${shell}` : false;
  test(`${shell} accepts its completion script`, { skip }, async (t) => {
    assert.ok(isThere, `CI needs ${shell}`);
    const { out, exitCode } = await troupe(['completion', shell]);
    assert.equal(exitCode, 0);
    const script = join(workingDirectory(t), 'completion');
    writeFileSync(script, out);
    const { status, stdout, stderr } = spawnSync(shell, args(script), { encoding: 'utf8' });
    assert.deepEqual([status, stdout, stderr], [0, says, '']);
  });
}

test('docs/cli.md names every command', async () => {
  const page = readFileSync(new URL('../../../../docs/cli.md', import.meta.url), 'utf8');
  const commandsOf = async (...group: string[]) => {
    const { out } = await troupe([...group, '--help']);
    const [, commands = ''] = /^Commands:$((?:\n .*)*)/m.exec(out) ?? [];
    return [...commands.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = '']) => name);
  };
  const groups = await commandsOf();
  assert.ok(groups.length > 20);
  for (const group of groups) {
    assert.ok(new RegExp(`(\\x60|troupe )${group}\\b`).test(page), group);
    if (group === 'api') continue; // the commands of `troupe api` are the operations, which docs/api.md lists
    // For a group of commands, the row of the table names them.
    for (const command of await commandsOf(group)) {
      const row =
        page.split('\n').find((line) => line.startsWith('|') && line.includes(`\`${group}\``)) ?? '';
      assert.ok(row.includes(command), `${group} ${command}`);
    }
  }
});

test('the settings file of a cloned folder decides nothing until it is allowed, and again after it has changed', async (t) => {
  const cwd = workingDirectory(t);
  const env = { XDG_CONFIG_HOME: join(cwd, 'own-settings') };
  mkdirSync(join(cwd, '.git'));
  const file = join(cwd, 'troupe.config.json');
  const write = (port: number) => writeFileSync(file, JSON.stringify({ port }), { mode: 0o600 });
  const portIn = async () => {
    const { out, err } = await troupe(['config', '--json'], { env, cwd });
    assert.equal(err, '');
    return (JSON.parse(out) as { name: string; value: unknown }[]).find(({ name }) => name === 'port')?.value;
  };
  write(9);
  assert.equal(await portIn(), 8787);
  assert.equal(accessOf(cwd, env)[0], 'http://127.0.0.1:8787', 'it does not decide where the token goes');
  const { err } = await troupe(['config'], { env, cwd });
  assert.equal(err, `troupe: ${file} is ignored. Read it, and if you trust it: troupe config allow\n`);

  assert.deepEqual(await troupe(['config', 'allow'], { env, cwd }), {
    exitCode: 0,
    out: `${file} is obeyed, until it changes\n`,
    err: '',
  });
  assert.equal(await portIn(), 9);
  assert.equal(accessOf(cwd, env)[0], 'http://127.0.0.1:9');
  write(10);
  assert.equal(await portIn(), 8787, 'a later pull may have changed it');
  await troupe(['config', 'allow'], { env, cwd });
  assert.equal(await portIn(), 10);
  await troupe(['config', 'deny'], { env, cwd });
  assert.equal(await portIn(), 8787);
  rmSync(file);
  assert.equal((await troupe(['config', 'allow'], { env, cwd })).exitCode, 4);
});

test('a settings file of root applies to other users at once, and to root only below /etc', () => {
  const fileAt = (path: string) => ({ path, text: '{}', ownerId: 0 });
  const files = [fileAt('/srv/unpacked/troupe.config.json'), fileAt('/etc/troupe/troupe.config.json')];
  const env = { XDG_CONFIG_HOME: '/nowhere' };
  assert.deepEqual(files.map(isObeyed(env, 1000)), [true, true]);
  assert.deepEqual(files.map(isObeyed(env, 0)), [false, true]);
});

test('endless standard input is refused at 256 MiB, before it takes all memory', (t) => {
  const zeros = openSync('/dev/zero', 'r');
  t.after(() => closeSync(zeros));
  const input = new URL('../../../src/faces/cli/input.js', import.meta.url).href;
  const { stdout } = spawnSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `import { processInput } from ${JSON.stringify(input)};
      await processInput().read().catch((error) => console.log(error.exitCode, error.message));`,
    ],
    { stdio: [zeros, 'pipe', 'inherit'], encoding: 'utf8', timeout: 120_000 },
  );
  assert.equal(stdout, '2 Standard input has more than 256 MiB.\n');
});
