/** The files of `deploy/` that tests cannot run name things that exist. Proxies are run in test/journeys. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { loadConfig } from '#src/base/config/config.ts';
import { SETTINGS } from '#src/base/config/settings.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';

const read = (name: string) => readFileSync(join('deploy', name), 'utf8');
/** Files of an installation that docs/operating.md and the systemd unit name. */
const INSTALLED = /\/opt\/troupe\/current\/lib\/node_modules\/troupe\/([\w./-]+\.\w+)/g;

test('every setting that deploy/ and docs/operating.md name exists', () => {
  const known = new Set(Object.values(SETTINGS).map(({ env }) => env));
  const files = readdirSync('deploy', { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const texts = [...files.map(({ parentPath, name }) => join(parentPath, name)), 'docs/operating.md'];
  for (const path of texts) {
    const named = readFileSync(path, 'utf8').match(/TROUPE_[A-Z0-9_]*[A-Z0-9]\b/g) ?? [];
    assert.deepEqual(
      named.filter((name) => !known.has(name)),
      [],
      path,
    );
  }
});

test('the settings of deploy/troupe.config.json are accepted', () => {
  const { config } = loadConfig({}, { cwd: 'deploy' });
  assert.equal(config.kernelConfinement, 'require');
  assert.equal(config.dataDir, '/var/lib/troupe');
});

test('every file of an installation that deploy/ and docs/operating.md name is in the package', () => {
  for (const path of ['deploy/troupe.service', 'docs/operating.md']) {
    const named = [...readFileSync(path, 'utf8').matchAll(INSTALLED)].map(([, file]) => file!);
    assert.ok(named.length > 0, path);
    for (const file of named) {
      assert.ok(existsSync(file), `${file} in ${path}`);
      assert.match(file, /^(deploy\/|README\.md$)/, 'package.json packs it');
    }
  }
});

test('systemd knows every line of the unit', (t) => {
  const { error, stderr } = spawnSync('systemd-analyze', ['verify', 'deploy/troupe.service'], {
    encoding: 'utf8',
  });
  if (error !== undefined) return t.diagnostic('systemd-analyze is not installed');
  const ours = stderr
    .split('\n')
    .filter(
      (line) =>
        line.includes('troupe.service') && !/DelegateSubgroup|[Cc]ommand .* not executable/.test(line),
    );
  assert.deepEqual(ours, []);
});

test('the health checks of proxies and of the image depend on whether the server serves, and not on kernels', () => {
  for (const name of ['haproxy.cfg', 'Caddyfile', 'Containerfile']) {
    const asked = read(name).match(/^(?!\s*#).*\/(?:healthz|readyz)/gm) ?? [];
    assert.equal(asked.length, 1, name);
    assert.match(asked[0]!, /\/healthz$/, name);
  }
});

test('nginx does not limit bodies of operations that take bytes of any size', () => {
  const [, unlimited = ''] = /location ~ (\S+) \{\s+client_max_body_size 0;/.exec(read('nginx.conf')) ?? [];
  const { fireByHook: _, ...others } = OPERATIONS; // its body has at most 32 KiB
  const paths = Object.values(others).flatMap((operation) =>
    'takesBytes' in operation ? [operation.path.replaceAll(/:\w+\*?/g, 'x')] : [],
  );
  assert.ok(paths.length > 0);
  for (const path of paths) assert.match(path, new RegExp(unlimited));
});

test('the unit and the settings of deploy/ have a folder for the audit, and limits of sessions and idle time', () => {
  assert.match(read('troupe.service'), /^LogsDirectory=troupe$/m);
  const { config } = loadConfig({}, { cwd: 'deploy' });
  for (const value of [config.maxSessions, config.workspaceMaxSessions, config.idleTimeoutS])
    assert.ok(value > 0);
});

test('the unit lets the server write every folder that the settings of deploy/ name', () => {
  const unit = read('troupe.service');
  const values = (name: string) => (new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '').split(' ');
  const writable = [
    ...values('StateDirectory').map((name) => `/var/lib/${name}`),
    ...values('RuntimeDirectory').map((name) => `/run/${name}`),
    ...values('ReadWritePaths').map((path) => path.replace(/^-/, '')),
  ];
  const { config } = loadConfig({}, { cwd: 'deploy' });
  const { dataDir, keyringFile, backupDir = '', listenSocket = '' } = config;
  for (const folder of [dataDir, dirname(keyringFile), backupDir, dirname(listenSocket)])
    assert.ok(writable.includes(folder), folder);
});

test('the unit waits for a server that extends its start time, and accepts no notices from notebook code', () => {
  const unit = read('troupe.service');
  assert.match(unit, /^Type=notify$/m);
  assert.match(unit, /^NotifyAccess=main$/m);
  assert.doesNotMatch(unit, /^ExecStartPost=/m);
});

test('the guide makes every folder in which systemd opens a file for the output of the service', () => {
  const guide = readFileSync('docs/operating.md', 'utf8');
  const files = [...guide.matchAll(/^Standard(?:Output|Error)=append:(\S+)$/gm)];
  assert.ok(files.length > 0);
  for (const [line, file = ''] of files) {
    const before = guide.slice(0, guide.indexOf(line));
    assert.match(before, new RegExp(`^install -d .* ${dirname(file)}$`, 'm'));
  }
});

test('the unit allows everything that confines kernels, and its stop timeout is longer than a drain', () => {
  const unit = read('troupe.service');
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];
  for (const name of [
    'ProtectKernelTunables',
    'ProtectKernelLogs',
    'ProtectHostname', // since systemd 257 this line makes /proc/sys/kernel/hostname a read-only mount
    'ProtectProc',
    'ProcSubset',
    'PrivatePIDs',
    'RestrictNamespaces',
    'PrivateUsers',
    'MountAPIVFS',
    'RootDirectory',
    'RootImage',
  ])
    assert.equal(value(name), undefined, `${name} would take away namespaces, or a /proc of their own`);
  // A path below /proc in any of these lines is a mount over a part of /proc, too.
  assert.doesNotMatch(unit, /^(?:\w+Paths|TemporaryFileSystem)=.*\/proc/m);
  assert.deepEqual(
    [value('KillMode'), value('OOMPolicy'), value('Delegate')],
    ['mixed', 'continue', 'cpu memory'],
  );
  assert.ok(Number(value('TimeoutStopSec')) > 30);
});

test('the seccomp profile of containers allows the calls that confine kernels, and denies by default', () => {
  const { defaultAction, syscalls } = JSON.parse(read('seccomp.json')) as {
    readonly defaultAction: string;
    readonly syscalls: readonly { readonly names: readonly string[]; readonly action: string }[];
  };
  assert.equal(defaultAction, 'SCMP_ACT_ERRNO');
  const allowed = new Set(
    syscalls.flatMap(({ names, action }) => (action === 'SCMP_ACT_ALLOW' ? names : [])),
  );
  const needed =
    'clone clone3 unshare mount umount2 pivot_root mount_setattr seccomp prctl landlock_create_ruleset landlock_add_rule landlock_restrict_self';
  const dangerous =
    'ptrace bpf kexec_load init_module finit_module perf_event_open io_uring_setup keyctl process_vm_writev reboot swapon';
  assert.deepEqual(
    needed.split(' ').filter((name) => !allowed.has(name)),
    [],
  );
  assert.deepEqual(
    dangerous.split(' ').filter((name) => allowed.has(name)),
    [],
  );
});

test('every command that builds the image with podman keeps the health check, which the OCI format lacks', () => {
  assert.match(read('Containerfile'), /^HEALTHCHECK /m);
  for (const text of [read('Containerfile'), readFileSync('docs/operating.md', 'utf8')]) {
    const commands = text.match(/podman build .*/g) ?? [];
    assert.ok(commands.length > 0);
    for (const command of commands) assert.match(command, /--format docker/);
  }
});

test('the image is built from the package alone, and runs the server as an ordinary user', () => {
  const lines = read('Containerfile').split('\n');
  const index = (start: string) => lines.findIndex((line) => line.startsWith(start));
  assert.ok(index('COPY troupe-*.tgz') !== -1 && index('COPY') < index('USER troupe'));
  assert.ok(index('USER troupe') < index('ENTRYPOINT ["troupe", "serve"]'));
  const allowed = readFileSync('.dockerignore', 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  assert.deepEqual(allowed, ['*', '!troupe-*.tgz']);
});
