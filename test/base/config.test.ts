import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Secret } from '#src/base/caller/secret.ts';
import { ConfigError, loadConfig } from '#src/base/config/config.ts';
import { readConfigFile } from '#src/base/config/file.ts';
import { automaticWorkers } from '#src/base/config/kinds.ts';
import { effectiveSettings, settingsTable } from '#src/base/config/report.ts';
import { readServiceAccess } from '#src/base/config/service-access.ts';
import { SETTING_NAMES, SETTINGS } from '#src/base/config/settings.ts';
import { usableProcessors } from '#src/base/os/processors.ts';
import { REPOSITORY } from '#test/setup/checkout.ts';

const PACKAGE_ROOT = '/opt/troupe';

/** Returns a new working directory, with `file` as its troupe.config.json. */
function workingDirectory(t: TestContext, file?: unknown): string {
  const cwd = mkdtempSync(join(tmpdir(), 'troupe-config-'));
  t.after(() => rmSync(cwd, { recursive: true }));
  if (file !== undefined) {
    writeFileSync(join(cwd, 'troupe.config.json'), typeof file === 'string' ? file : JSON.stringify(file));
  }
  return cwd;
}

function load(t: TestContext, env: Record<string, string>, file?: unknown) {
  const cwd = workingDirectory(t, file);
  return { cwd, ...loadConfig(env, { cwd, packageRoot: PACKAGE_ROOT }) };
}

function problemsOf(t: TestContext, env: Record<string, string>, file?: unknown): readonly string[] {
  const cwd = workingDirectory(t, file);
  try {
    loadConfig(env, { cwd, packageRoot: PACKAGE_ROOT });
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    assert.equal(error.message, error.problems.join('\n'));
    return error.problems.map((problem) => problem.replaceAll(cwd, '<cwd>'));
  }
  return [];
}

test('with nothing set, every setting has its default', (t) => {
  const { cwd, config } = load(t, {});
  assert.deepEqual(config, {
    host: '127.0.0.1',
    port: 8787,
    listenSocket: undefined,
    listenSocketGroup: undefined,
    publicUrl: undefined,
    uwebsockets: undefined,
    corsOrigins: [],
    pageHosts: [],
    workers: automaticWorkers(process.platform, usableProcessors()),
    dataDir: join(cwd, '.troupe'),
    newStore: false,
    readOnly: false,
    diskReserveMb: 64,
    diskWarnMb: 1024,
    backupDir: undefined,
    backupEveryH: 24,
    backupIncrementMin: 5,
    backupKeep: 7,
    auditForward: undefined,
    drainS: 0,
    logLevel: 'info',
    slowRequestMs: 1000,
    otlpUrl: undefined,
    traceSamplePercent: 1,
    trustedProxies: [],
    bootstrapToken: undefined,
    bootstrapWorkspace: undefined,
    keyringFile: join(cwd, '.troupe', 'keyring.json'),
    egressAllow: undefined,
    maxFileMb: 1024,
    userMaxSessions: 0,
    userMaxRuns: 0,
    workspaceFilesMb: 0,
    workspaceMaxJobs: 10_000,
    workspaceMaxFiles: 0,
    maxConnections: 0,
    warmUp: true,
    signInIdleS: 43_200,
    signInMaxS: 604_800,
    tokenMaxAgeDays: 0,
    nodesPlacement: 'spread',
    oidcIssuer: undefined,
    oidcClientId: undefined,
    oidcClientSecretFile: undefined,
    oidcName: 'single sign-on',
    oidcScopes: 'openid profile email offline_access',
    oidcParameters: '',
    oidcUserClaim: 'email',
    oidcGroupsClaim: 'groups',
    oidcRoles: [],
    oidcCheckS: 30,
    maxSessions: 0,
    idleTimeoutS: 0,
    keepRunsDays: 0,
    keepVersionsDays: 0,
    keepOutputsDays: 0,
    keepDeliveriesDays: 0,
    keepAuditDays: 0,
    heartbeatS: 2.5,
    subscriberBufferBytes: 1_048_576,
    streamMemoryMb: 256,
    workspaceMaxSessions: 0,
    workspaceMaxRuns: 0,
    workspaceMaxSubscribers: 0,
    python: '/opt/troupe/.venv/bin/python',
    preload: true,
    kernelMemoryMb: 4096,
    kernelProcesses: 1024,
    kernelOpenFiles: 4096,
    kernelFileMb: 10_240,
    kernelCpuS: 0,
    kernelNice: 5,
    kernelReadPaths: [],
    kernelWritePaths: [],
    kernelConfinement: 'auto',
    kernelNetwork: 'host',
    kernelUid: undefined,
    kernelNodes: 'none',
    nodesHost: '0.0.0.0',
    nodesPort: 8790,
    nodesAddress: undefined,
    nodesSecretFile: undefined,
    nodesMin: 1,
    nodesMax: 10,
    rayTokenFile: undefined,
    nodeInvitation: undefined,
    nodeDir: join(cwd, '.troupe-node'),
    nodeSessions: 0,
    nodeKernelNetwork: 'none',
    packages: true,
    packagesBuild: true,
    packagesBuildTimeoutS: 900,
    packageIndex: 'https://pypi.org/simple',
    packagesMaxMb: 20_480,
    defaultModel: undefined,
    localModel: undefined,
    localModelMemoryMb: 0,
    openaiCompatibleUrl: undefined,
    openaiCompatibleApiKey: undefined,
    anthropicApiKey: undefined,
    openaiApiKey: undefined,
    anthropicBaseUrl: 'https://api.anthropic.com/v1',
    openaiBaseUrl: 'https://api.openai.com/v1',
    modelSilenceS: 120,
    modelContextTokens: 0,
    agentMaxSteps: 50,
    agentMaxTokens: 0,
    agentTimeoutS: 1800,
  });
});

test('the environment overrides the file, and the file overrides the default', (t) => {
  const env = { TROUPE_PORT: '9000', TROUPE_HOST: '' };
  const { config, sources } = load(t, env, { port: 9001, host: '::1', heartbeatS: 0.5, preload: false });
  assert.deepEqual([config.port, config.host, config.heartbeatS, config.preload], [9000, '::1', 0.5, false]);
  assert.deepEqual(
    [sources.port, sources.host, sources.preload, sources.dataDir],
    ['environment', 'file', 'file', 'default'],
  );
});

test('the configuration is frozen', (t) => {
  const loaded = load(t, { TROUPE_EGRESS_ALLOW: '10.0.0.0/8' });
  assert.ok(Object.isFrozen(loaded.config) && Object.isFrozen(loaded.sources));
  assert.ok(Object.isFrozen(loaded.config.egressAllow));
});

test('an unknown TROUPE_ name is an error with a suggestion', (t) => {
  assert.deepEqual(problemsOf(t, { TROUPE_PROT: '1', TROUPE_QQQQQQQQ: '', OTHER: 'x' }), [
    'TROUPE_PROT is not a setting. Did you mean TROUPE_PORT?',
    'TROUPE_QQQQQQQQ is not a setting. `troupe config` lists them all.',
  ]);
});

test('an unknown member of the file is an error with a suggestion', (t) => {
  assert.deepEqual(problemsOf(t, {}, { dataDirectory: 'x', TROUPE_PORT: 1 }), [
    'dataDirectory in troupe.config.json is not a setting. Did you mean dataDir?',
    'TROUPE_PORT in troupe.config.json is not a setting. Did you mean port?',
  ]);
});

test('all bad values are reported together, each by the name that the user wrote, without being quoted', (t) => {
  const env = { TROUPE_PORT: '70000', TROUPE_LOG_LEVEL: 'loud', TROUPE_BOOTSTRAP_TOKEN: 'too short' };
  assert.deepEqual(problemsOf(t, env, { preload: 'maybe', maxSessions: -1, host: { a: 1 } }), [
    'host in troupe.config.json must be a string, a number, true, false or a list.',
    'TROUPE_PORT must be a whole number from 0 to 65535.',
    'TROUPE_LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent.',
    'TROUPE_BOOTSTRAP_TOKEN must be 16 to 256 visible ASCII characters.',
    'maxSessions in troupe.config.json must be a whole number from 0 to 1000000.',
    'preload in troupe.config.json must be true or false.',
  ]);
});

test('a file that is not a JSON object is an error, and its content is not quoted', (t) => {
  assert.deepEqual(problemsOf(t, {}, '{"openaiApiKey": "sk-1",}'), [
    '<cwd>/troupe.config.json is not valid JSON.',
  ]);
  assert.deepEqual(problemsOf(t, {}, '[]'), ['troupe.config.json must hold one JSON object.']);
});

test('an index with a password is refused, and the password is not quoted', (t) => {
  const index = 'https://user:hush@mirror.example/simple';
  const refusal = 'must be an http or https address without credentials, query or fragment.';
  assert.deepEqual(problemsOf(t, { TROUPE_PACKAGE_INDEX: index }), [`TROUPE_PACKAGE_INDEX ${refusal}`]);
  assert.deepEqual(problemsOf(t, {}, JSON.stringify({ packageIndex: index })), [
    `packageIndex in troupe.config.json ${refusal}`,
  ]);
});

const ACCEPTED: readonly (readonly [string, string, unknown])[] = [
  ['TROUPE_PORT', '0', 0],
  ['TROUPE_HOST', '0.0.0.0', '0.0.0.0'],
  ['TROUPE_HOST', 'db-1.example.org', 'db-1.example.org'],
  ['TROUPE_PRELOAD', 'OFF', false],
  ['TROUPE_HEARTBEAT_S', '0.25', 0.25],
  ['TROUPE_CORS_ORIGINS', 'none', []],
  [
    'TROUPE_CORS_ORIGINS',
    'https://a.example, http://localhost:5173',
    ['https://a.example', 'http://localhost:5173'],
  ],
  ['TROUPE_PAGE_HOSTS', 'none', []],
  [
    'TROUPE_PAGE_HOSTS',
    'https://tiles.example, https://*.tiles.example:8443,http://127.0.0.1:8000',
    ['https://tiles.example', 'https://*.tiles.example:8443', 'http://127.0.0.1:8000'],
  ],
  ['TROUPE_PYTHON', 'python3', 'python3'],
  ['TROUPE_KERNEL_UID', '1000', 1000],
  ['TROUPE_EGRESS_ALLOW', 'db.internal, 10.0.0.0/8,fd00::/8', ['db.internal', '10.0.0.0/8', 'fd00::/8']],
  ['TROUPE_EGRESS_ALLOW', 'none', []],
  ['TROUPE_OPENAI_COMPATIBLE_URL', 'http://gpu:8000/v1/', 'http://gpu:8000/v1'],
  ['TROUPE_DEFAULT_MODEL', 'openai/gpt-5', 'openai/gpt-5'],
  ['TROUPE_BOOTSTRAP_WORKSPACE', 'team_1', 'team_1'],
];

for (const [env, text, value] of ACCEPTED) {
  test(`${env}=${text} is accepted`, (t) => {
    const name = SETTING_NAMES.find((candidate) => SETTINGS[candidate].env === env);
    assert.ok(name);
    assert.deepEqual(load(t, { [env]: text }).config[name], value);
  });
}

const REFUSED: readonly (readonly [string, string])[] = [
  ['TROUPE_PORT', '1e3'],
  ['TROUPE_PORT', ' 80'],
  ['TROUPE_HOST', 'http://127.0.0.1'],
  ['TROUPE_HOST', '127.0.0.256'],
  ['TROUPE_HEARTBEAT_S', '0'],
  ['TROUPE_CORS_ORIGINS', '*'],
  ['TROUPE_CORS_ORIGINS', 'null'],
  ['TROUPE_CORS_ORIGINS', 'a.example'],
  ['TROUPE_CORS_ORIGINS', 'https://a.example/'],
  ['TROUPE_CORS_ORIGINS', 'https://a.example,'],
  ['TROUPE_PAGE_HOSTS', '*'],
  ['TROUPE_PAGE_HOSTS', 'https://*'],
  ['TROUPE_PAGE_HOSTS', 'https://*.example'],
  ['TROUPE_PAGE_HOSTS', 'https://a.*.example'],
  ['TROUPE_PAGE_HOSTS', 'http://tiles.example'],
  ['TROUPE_PAGE_HOSTS', 'https://tiles.example/'],
  ['TROUPE_PAGE_HOSTS', 'https://tiles.example; script-src *'],
  ['TROUPE_PAGE_HOSTS', 'https://a;b.example'],
  ['TROUPE_PAGE_HOSTS', Array.from({ length: 51 }, (_, i) => `https://h${i}.example`).join()],
  ['TROUPE_IDLE_TIMEOUT_S', '-1'],
  ['TROUPE_KERNEL_UID', '0'],
  ['TROUPE_KERNEL_NETWORK', 'None'],
  ['TROUPE_EGRESS_ALLOW', '10.0.0.0/33'],
  ['TROUPE_EGRESS_ALLOW', 'a,,b'],
  ['TROUPE_OPENAI_COMPATIBLE_URL', 'http://user:pass@gpu/v1'],
  ['TROUPE_PACKAGE_INDEX', 'https://user:pass@mirror.example/simple'],
  ['TROUPE_PACKAGE_INDEX', 'https://mirror.example/simple?token=hush'],
  ['TROUPE_DEFAULT_MODEL', 'gpt-5'],
  ['TROUPE_BOOTSTRAP_WORKSPACE', 'a b'],
  ['TROUPE_BOOTSTRAP_TOKEN', 'sixteen or more but with a space'],
];

for (const [env, text] of REFUSED) {
  test(`${env}=${text} is refused`, (t) => {
    const problems = problemsOf(t, { [env]: text });
    assert.equal(problems.length, 1);
    assert.ok(problems[0]?.startsWith(`${env} must be `));
  });
}

test('relative paths are relative to the working directory, and a list in the file may be empty', (t) => {
  const { cwd, config } = load(t, { TROUPE_PYTHON: 'env/bin/python' }, { dataDir: 'data', egressAllow: [] });
  assert.deepEqual(
    [config.python, config.dataDir, config.keyringFile, config.egressAllow],
    [join(cwd, 'env/bin/python'), join(cwd, 'data'), join(cwd, 'data', 'keyring.json'), []],
  );
});

test('the names of settings are the same in the environment, in the file and in the code', () => {
  const expected = SETTING_NAMES.map((name) => {
    const capitals = name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
    return name === 'anthropicApiKey' || name === 'openaiApiKey' ? capitals : `TROUPE_${capitals}`;
  });
  assert.deepEqual(
    SETTING_NAMES.map((name) => SETTINGS[name].env),
    expected,
  );
});

test('the report shows the source of each value and hides the secrets', (t) => {
  const token = 'a-token-of-at-least-16';
  const loaded = load(t, { TROUPE_BOOTSTRAP_TOKEN: token, OPENAI_API_KEY: token }, { heartbeatS: 2 });
  const report = effectiveSettings(loaded);
  assert.equal(JSON.stringify(report).includes(token), false);
  const shown = (name: string) => report.find((setting) => setting.name === name);
  assert.deepEqual(
    report.filter((setting) => setting.secret).map(({ name, value }) => [name, value]),
    [
      ['bootstrapToken', '[secret]'],
      ['nodeInvitation', null],
      ['openaiCompatibleApiKey', null],
      ['anthropicApiKey', null],
      ['openaiApiKey', '[secret]'],
    ],
  );
  assert.deepEqual(shown('heartbeatS'), {
    name: 'heartbeatS',
    env: 'TROUPE_HEARTBEAT_S',
    value: 2,
    unit: 's',
    source: 'file',
    secret: false,
  });
  assert.ok(loaded.config.bootstrapToken instanceof Secret);
  assert.equal(loaded.config.bootstrapToken.reveal(), token);
});

test('the documentation table has one row for each setting', () => {
  const lines = settingsTable().trimEnd().split('\n');
  assert.equal(lines.length, SETTING_NAMES.length + 2);
  assert.ok(lines.every((line) => line.split(/(?<!\\)\|/).length === 6));
  assert.equal(
    lines.find((line) => line.includes('TROUPE_PORT')),
    '| `TROUPE_PORT` | `port` | `8787` | Port to listen on. With 0 the system chooses a free port, which is printed. A whole number from 0 to 65535. |',
  );
});

test('a client finds its server through the SERVICE_ variables', () => {
  assert.deepEqual(readServiceAccess({}), {
    baseUrl: undefined,
    accessToken: undefined,
    workspaceId: undefined,
    sessionId: undefined,
  });
  const access = readServiceAccess({
    SERVICE_BASE_URL: 'https://troupe.example/',
    SERVICE_ACCESS_TOKEN: 'secret',
    SERVICE_WORKSPACE_ID: 'ws_1',
    SERVICE_SESSION_ID: 'nb_1',
  });
  assert.equal(access.accessToken?.reveal(), 'secret');
  assert.deepEqual(
    [access.baseUrl, access.workspaceId, access.sessionId],
    ['https://troupe.example', 'ws_1', 'nb_1'],
  );
});

test('a server has one worker on up to two processors, and one worker for every two processors on larger machines, at most eight', () => {
  const on = (processors: number) => automaticWorkers('linux', processors);
  assert.deepEqual([0.5, 1, 2, 3, 4, 7.5, 16, 17, 128].map(on), [1, 1, 1, 1, 2, 3, 8, 8, 8]);
  assert.equal(automaticWorkers('darwin', 16), 1);
});

test('the number of workers is from 1 to 64, or auto', (t) => {
  for (const workers of ['1', '64']) {
    assert.equal(load(t, { TROUPE_WORKERS: workers }).config.workers, Number(workers));
  }
  for (const workers of ['0', '65', 'all', '-1']) {
    assert.deepEqual(problemsOf(t, { TROUPE_WORKERS: workers }), [
      'TROUPE_WORKERS must be auto, or a whole number from 1 to 64.',
    ]);
  }
});

test('a troupe.config.json that another user could have written is reported and ignored', (t) => {
  const me = process.getuid?.() ?? 0;
  const complaints = (change: (cwd: string, file: string) => void, userId = me): string[] => {
    const cwd = workingDirectory(t, { python: '/tmp/theirs' });
    const file = join(cwd, 'troupe.config.json');
    chmodSync(file, 0o600);
    change(cwd, file);
    const problems: string[] = [];
    const members = readConfigFile(cwd, (problem) => problems.push(problem), { userId });
    assert.equal(members.size, problems.length === 0 ? 1 : 0);
    return problems.map((problem) => /^\S+ is not obeyed, because ([^.]+)\./.exec(problem)?.[1] ?? problem);
  };
  assert.deepEqual(
    complaints(() => {}),
    [],
  );
  assert.deepEqual(
    complaints((cwd) => chmodSync(cwd, 0o757)),
    ['other users can write to its folder'],
  );
  assert.deepEqual(
    complaints((cwd) => chmodSync(cwd, 0o1777)),
    [],
    'in such a folder nobody replaces the file of somebody else',
  );
  assert.deepEqual(
    complaints((_, file) => chmodSync(file, 0o606)),
    ['other users can write to it'],
  );
  if (me !== 0) {
    assert.deepEqual(
      complaints(() => {}, me + 1),
      ['its folder belongs to another user'],
    );
    return;
  }
  assert.deepEqual(
    complaints((cwd) => chownSync(cwd, 4711, 4711)),
    ['its folder belongs to another user'],
  );
  assert.deepEqual(
    complaints((cwd, file) => {
      chmodSync(cwd, 0o1777);
      chownSync(file, 4711, 4711);
    }),
    ['it belongs to another user'],
  );
  assert.deepEqual(
    complaints((cwd, file) => {
      chmodSync(cwd, 0o1777);
      renameSync(file, join(cwd, 'mine.json'));
      symlinkSync('mine.json', file);
      lchownSync(file, 4711, 4711);
    }),
    ['it belongs to another user'],
    'a link of theirs to a file of mine',
  );
  assert.deepEqual(
    complaints(() => {}, 4711),
    [],
    'files of root are obeyed',
  );
  assert.deepEqual(
    complaints((cwd) => {
      chownSync(cwd, 4711, 100);
      chmodSync(cwd, 0o775);
    }, 4711),
    ['other users can write to its folder'],
  );
});

test('the table of groups has rows of group, workspace and role', (t) => {
  const roles = (text: string) => load(t, { TROUPE_OIDC_ROLES: text }).config.oidcRoles;
  assert.deepEqual(roles('data team=ws_1:editor, /a/b=ws_2:owner'), [
    'data team=ws_1:editor',
    '/a/b=ws_2:owner',
  ]);
  assert.deepEqual(roles('none'), []);
  const most = Array.from({ length: 1000 }, (_, i) => `g${i}=ws_1:viewer`);
  assert.equal(roles(most.join(',')).length, 1000);
  for (const text of [
    'a',
    'a=ws_1',
    'a=ws_1:admin',
    '=ws_1:owner',
    'a=:owner',
    'a=b=ws_1:owner',
    'a=ws_1:owner,',
    [...most, 'h=ws_1:viewer'].join(','),
  ])
    assert.throws(() => roles(text), ConfigError, text.slice(0, 40));
});

test('an identity provider on another machine is reached over TLS, and the name of a provider is kept as written', (t) => {
  const issuerOf = (text: string) => load(t, { TROUPE_OIDC_ISSUER: text }).config.oidcIssuer;
  for (const text of [
    'https://login.example/realms/x/',
    'https://login.example',
    'http://127.0.0.1:8080/x',
    'http://localhost',
  ])
    assert.equal(issuerOf(text), text);
  for (const text of [
    'http://login.example',
    'login.example',
    'https://a:b@login.example',
    'https://login.example?x=1',
  ])
    assert.throws(() => issuerOf(text), ConfigError, text);
});

test('the provider is asked about people at least every ten minutes, because sessions end after fifteen minutes without an answer', (t) => {
  for (const seconds of ['1', '600'])
    assert.equal(load(t, { TROUPE_OIDC_CHECK_S: seconds }).config.oidcCheckS, Number(seconds));
  for (const seconds of ['0', '601'])
    assert.deepEqual(problemsOf(t, { TROUPE_OIDC_CHECK_S: seconds }), [
      'TROUPE_OIDC_CHECK_S must be a number of seconds from 1 to 600.',
    ]);
});

test('further parameters of a sign-in cannot replace those that the server sets', (t) => {
  const parametersOf = (text: string) => load(t, { TROUPE_OIDC_PARAMETERS: text }).config.oidcParameters;
  const google = 'access_type=offline&prompt=consent';
  assert.equal(parametersOf(google), google);
  assert.equal(parametersOf('none'), '');
  for (const wrong of [
    'state=x',
    'a=b&nonce=x',
    'code%5Fchallenge=x',
    'redirect_uri=x',
    '?a=b',
    'a=b c',
    '=x',
    '&',
  ])
    assert.throws(() => parametersOf(wrong), /TROUPE_OIDC_PARAMETERS must be/, wrong);
});

test('kernels run here, on nodes that join, or on a Ray cluster', (t) => {
  const placeOf = (text: string) => load(t, { TROUPE_KERNEL_NODES: text }).config.kernelNodes;
  assert.equal(placeOf('join'), 'join');
  assert.equal(placeOf('ray:http://head:8265/'), 'ray:http://head:8265');
  for (const wrong of [
    'ray',
    'ray:',
    'ray:head:8265',
    'ray://head:10001',
    'ray:http://user:secret@head:8265',
  ])
    assert.deepEqual(problemsOf(t, { TROUPE_KERNEL_NODES: wrong }), [
      'TROUPE_KERNEL_NODES must be none, join, or ray: with an address, such as ray:http://head:8265.',
    ]);
});

test('a troupe.config.json that is a pipe, a folder or larger than 1 MiB is refused, by set-up and by commands', (t) => {
  const found = (make: (file: string) => void) => {
    const cwd = workingDirectory(t);
    make(join(cwd, 'troupe.config.json'));
    // Runs in a separate process, because a pipe without a writer would stop this process.
    const program = `
      import { readConfigFile } from ${JSON.stringify(join(REPOSITORY, 'dist/src/base/config/file.js'))};
      import { settingOf } from ${JSON.stringify(join(REPOSITORY, 'src/setup/settings.mjs'))};
      readConfigFile(${JSON.stringify(cwd)}, console.log, { userId: undefined });
      console.log(settingOf('TROUPE_UNSET', 'python', ${JSON.stringify(cwd)}));`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    return stdout.replaceAll(cwd, '<cwd>');
  };
  const refused = (why: string) => `<cwd>/troupe.config.json cannot be read: ${why}\nundefined\n`;
  const pipe = (file: string) => spawnSync('mkfifo', [file]);
  assert.equal(found(pipe), refused('it is not a file'));
  assert.equal(
    found((file) => mkdirSync(file)),
    refused('it is not a file'),
  );
  const text = (bytes: number) => JSON.stringify({ python: '' }).padEnd(bytes);
  const write = (bytes: number) => (file: string) => writeFileSync(file, text(bytes));
  assert.equal(found(write((1 << 20) + 1)), refused('it is larger than 1048576 bytes'));
  assert.equal(found(write(1 << 20)), '\n', 'the largest file that is read');
});
