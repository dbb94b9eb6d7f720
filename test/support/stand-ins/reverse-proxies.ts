/** Starts reverse proxies, with configurations of the documentation, in front of a server. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { eventually } from '../processes.ts';
import { removeAfter } from '../remove-folder.ts';
import type { Owner } from '../server-fixture.ts';
import { TEST_CERTIFICATE, TEST_KEY } from './test-certificate.ts';

/** The server's socket in the files of `deploy/`. */
const SOCKET = '/run/troupe/http.sock';
const DEBIAN = '/etc/nginx/nginx.conf';

/** Returns why a test that needs this program cannot run here, or false. In CI it must run. */
export function lacks(program: 'nginx' | 'haproxy' | 'caddy' | 'prometheus'): string | false {
  if (find(program) !== undefined || process.env.CI === 'true') return false;
  return `${program} is not installed: apt-get install ${program}`;
}

function find(program: string): string | undefined {
  return [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
    .map((folder) => join(folder, program))
    .find(existsSync);
}

/** Returns a port of the loopback that nobody listens on. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  assert.ok(typeof address === 'object' && address !== null);
  return address.port;
}

/** A proxy in front of a server, with TLS. */
export interface TlsProxy {
  /** The address with https. */
  readonly baseUrl: string;
  /** The http address, which redirects to the https address. */
  readonly plainUrl: string;
}

/**
 * A proxy of `deploy/`, with the replacements that turn its file into one for a test. Each text on the left occurs exactly once in
 * the file; the rest is used unchanged.
 */
interface Kind {
  readonly file: string;
  readonly args: (config: string, folder: string) => readonly string[];
  readonly replace: (place: Place) => Readonly<Record<string, string>>;
  readonly wrap?: (text: string, place: Place) => string;
}

interface Place {
  readonly folder: string;
  readonly socketPath: string;
  readonly plainPort: number;
  readonly port: number;
}

export const PROXIES = {
  nginx: {
    file: 'nginx.conf',
    args: nginxArguments,
    replace: ({ folder, socketPath, plainPort, port }) => ({
      [SOCKET]: socketPath,
      'listen 80;': `listen 127.0.0.1:${plainPort};`,
      'listen [::]:80;': `listen [::1]:${plainPort};`,
      'https://$host$request_uri': `https://$host:${port}$request_uri`,
      'listen 443 ssl': `listen 127.0.0.1:${port} ssl`,
      'listen [::]:443 ssl': `listen [::1]:${port} ssl`,
      '/etc/ssl/troupe/fullchain.pem': join(folder, 'certificate.pem'),
      '/etc/ssl/troupe/privkey.pem': join(folder, 'key.pem'),
    }),
    wrap: (text, { folder }) => withinDebian(folder, text),
  },
  haproxy: {
    file: 'haproxy.cfg',
    args: (config) => ['-db', '-f', config],
    replace: ({ socketPath, plainPort, port }) => ({
      [SOCKET]: socketPath,
      'bind :80\n': `bind 127.0.0.1:${plainPort}\n`,
      'bind :::80': `bind ::1:${plainPort}`,
      'bind :443': `bind 127.0.0.1:${port}`,
      'bind :::443': `bind ::1:${port}`,
      'scheme https': `location https://127.0.0.1:${port}%[pathq]`,
      // Settings that need root, and a group that tests do not make.
      '    log /dev/log local0\n': '',
      '    user haproxy\n    group troupe-proxy\n': '',
    }),
  },
  caddy: {
    file: 'Caddyfile',
    args: (config) => ['run', '--adapter', 'caddyfile', '--config', config],
    replace: ({ folder, socketPath, port }) => ({
      [SOCKET]: socketPath,
      'troupe.example {': `https://127.0.0.1:${port} {\n\ttls ${join(folder, 'certificate.pem')} ${join(folder, 'key.pem')}\n`,
    }),
    wrap: (text, { port, plainPort }) =>
      `{\n\tadmin off\n\tstorage file_system {$XDG_DATA_HOME}\n\thttp_port ${plainPort}\n\thttps_port ${port}\n}\n${text}`,
  },
} as const satisfies Record<string, Kind>;
export type ProxyName = keyof typeof PROXIES;

const isRoot = process.getuid?.() === 0;

/** The settings of a server in front of which these proxies can be put, and the path of its socket. */
export interface BehindProxies {
  readonly socketPath: string;
  /** Has no socket unless the tests run as root, because only root can give it to the group. All tests behind a proxy are skipped then. */
  readonly settings: Readonly<Record<string, string>>;
}

/** Returns why a test that starts this proxy in front of a unix socket cannot run here, or false. */
export function lacksProxy(name: ProxyName): string | false {
  if (!isRoot) return 'a proxy with the user of the server cannot connect to its socket';
  return lacks(name);
}

/** Makes a folder for a socket to which nginx of tests can connect, as `nobody`. It is removed when the owner ends. */
export function behindProxies(owner: Owner): BehindProxies {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-socket-'));
  chmodSync(folder, 0o711);
  removeAfter(owner, folder);
  const socketPath = join(folder, 'http.sock');
  return {
    socketPath,
    settings: isRoot ? { TROUPE_LISTEN_SOCKET: socketPath, TROUPE_LISTEN_SOCKET_GROUP: 'nogroup' } : {},
  };
}

/**
 * Starts the proxy with its file of `deploy/`, on free ports, in front of the server that listens on that socket. Resolves once the
 * proxy answers.
 */
export async function startTlsProxy(owner: Owner, name: ProxyName, socketPath: string): Promise<TlsProxy> {
  const folder = mkdtempSync(join(tmpdir(), `troupe-${name}-`));
  writeFileSync(join(folder, 'certificate.pem'), TEST_CERTIFICATE);
  writeFileSync(join(folder, 'key.pem'), TEST_KEY, { mode: 0o600 });
  writeFileSync(join(folder, 'both.pem'), TEST_CERTIFICATE + TEST_KEY, { mode: 0o600 });
  const [plainPort, port] = [await freePort(), await freePort()];
  const kind: Kind = PROXIES[name];
  const place = { folder, socketPath, plainPort, port };
  let text = readFileSync(join('deploy', kind.file), 'utf8');
  for (const [from, to] of Object.entries(kind.replace(place))) {
    assert.equal(text.split(from).length, 2, `deploy/${kind.file} has this once: ${from}`);
    text = text.replace(from, () => to);
  }
  // Each listener has the certificate.
  text = text.replaceAll('/etc/haproxy/troupe.pem', join(folder, 'both.pem'));
  const config = join(folder, kind.file);
  writeFileSync(config, kind.wrap?.(text, place) ?? text);
  const plainUrl = `http://127.0.0.1:${plainPort}`;
  await run(owner, name, kind.args(config, folder), folder, () =>
    fetch(plainUrl, { redirect: 'manual' }).then(
      ({ status }) => status < 400,
      () => false,
    ),
  );
  return { plainUrl, baseUrl: `https://127.0.0.1:${port}` };
}

/** Starts nginx without TLS, with one `location`. Returns its address once the server behind it answers. */
export async function startNginx(owner: Owner, location: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-nginx-'));
  const port = await freePort();
  const config = join(folder, 'nginx.conf');
  const site = `server { listen 127.0.0.1:${port}; location / { ${location} } }`;
  writeFileSync(config, withinDebian(folder, site));
  const baseUrl = `http://127.0.0.1:${port}`;
  await run(owner, 'nginx', nginxArguments(config, folder), folder, () =>
    fetch(`${baseUrl}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return baseUrl;
}

function nginxArguments(config: string, folder: string): readonly string[] {
  return ['-p', folder, '-c', config, '-e', join(folder, 'error.log')];
}

/** Returns the nginx configuration of the distribution, with our site in place of its sites. */
function withinDebian(folder: string, site: string): string {
  const http = existsSync(DEBIAN)
    ? (/\nhttp \{([\s\S]*)\n\}/.exec(readFileSync(DEBIAN, 'utf8'))?.[1] ?? '')
    : 'gzip on;';
  const own = http
    .replace(/^\s*(include \/etc\/nginx\/(conf\.d|sites-enabled)|access_log|error_log).*$/gm, '')
    .trimEnd();
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
    .join(' ');
  return [
    'daemon off; worker_processes 1;',
    `pid ${folder}/pid; error_log ${folder}/error.log;`,
    'events { worker_connections 64; }',
    `http {${own}\naccess_log off; ${paths}\n${site} }`,
  ].join('\n');
}

async function run(
  owner: Owner,
  name: ProxyName,
  args: readonly string[],
  folder: string,
  answers: () => Promise<boolean>,
): Promise<void> {
  const program = find(name);
  assert.ok(program, `CI needs ${name}`);
  const child = spawn(program, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
  const ended = once(child, 'exit');
  owner.after(async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  await eventually(`${name} answers`, () => {
    const log = join(folder, 'error.log');
    assert.equal(child.exitCode, null, output + (existsSync(log) ? readFileSync(log, 'utf8') : ''));
    return answers();
  });
}
